package arroyo_udf_plugin;

import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;

/**
 * Passes on messages with their keys, and before each checkpoint an empty message for each key that there was. Without
 * generics, because Janino compiles it.
 */
public class MarksSlices extends AbstractStreamOperator implements OneInputStreamOperator {
    private final Set keys = new LinkedHashSet();

    public void processElement(StreamRecord message) {
        keys.add(((Row) message.getValue()).getField(0));
        output.collect(message);
    }

    public void prepareSnapshotPreBarrier(long checkpoint) {
        for (Iterator each = keys.iterator(); each.hasNext();) {
            Row mark = Row.of(new Object[] {-1, -1, new byte[0]});
            output.collect(new StreamRecord(Row.of(new Object[] {each.next(), mark})));
        }
    }
}
