package arroyo_udf_plugin;

import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;

/**
 * Passes on messages, and an empty one before each checkpoint and at the end. Without generics, because Janino compiles
 * it.
 */
public class MarksCheckpoints extends AbstractStreamOperator implements OneInputStreamOperator, BoundedOneInput {
    public void processElement(StreamRecord message) {
        output.collect(message);
    }

    public void prepareSnapshotPreBarrier(long checkpoint) {
        mark();
    }

    public void endInput() {
        mark();
    }

    private void mark() {
        output.collect(new StreamRecord(Row.of(new Object[] {-1, -1, new byte[0]})));
    }
}
