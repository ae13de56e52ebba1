package arroyo_udf_plugin;

import org.apache.flink.api.common.operators.ProcessingTimeService;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;

/**
 * Passes on messages with their keys. For each slice of this subtask, a tick again and again, so that a slice without
 * messages knows that time goes by; a mark before each checkpoint; and the end. A slice is its key group, as keys.py
 * says. Without generics, because Janino compiles it.
 */
public class FeedsSlices extends AbstractStreamOperator
        implements OneInputStreamOperator, BoundedOneInput, ProcessingTimeService.ProcessingTimeCallback {
    private static final int MARK = -1;
    private static final int TICK = -2;
    private static final int END = -5;
    private static final long EVERY = 100;

    private int[] keys;

    /** Of the slices. */
    public void setKeys(int[] keys) {
        this.keys = keys;
    }

    public void open() {
        getProcessingTimeService().scheduleWithFixedDelay(this, EVERY, EVERY);
    }

    public void processElement(StreamRecord message) {
        output.collect(message);
    }

    public void onProcessingTime(long time) {
        tell(TICK);
    }

    public void prepareSnapshotPreBarrier(long checkpoint) {
        tell(MARK);
    }

    public void endInput() {
        tell(END);
    }

    private void tell(int what) {
        int parallelism = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
        int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
        KeyGroupRange own =
                KeyGroupRangeAssignment.computeKeyGroupRangeForOperatorIndex(keys.length, parallelism, subtask);
        for (int slice = own.getStartKeyGroup(); slice <= own.getEndKeyGroup(); slice++) {
            Row posted = Row.of(new Object[] {what, slice, new byte[0]});
            output.collect(new StreamRecord(Row.of(new Object[] {keys[slice], posted})));
        }
    }
}
