package arroyo_udf_plugin;

import java.nio.ByteBuffer;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;

/**
 * Many messages as one record (see packed.py): each becomes a row of value, key and time. Without generics, because
 * Janino compiles it.
 */
public class UnpacksMessages extends AbstractStreamOperator implements OneInputStreamOperator {
    public void processElement(StreamRecord element) {
        ByteBuffer pack = ByteBuffer.wrap((byte[]) element.getValue());
        int count = pack.getInt();
        int parts = pack.getInt();
        int[] values = lengths(pack, count, true);
        int[] keys = lengths(pack, count, (parts & 1) != 0);
        long[] times = new long[count];
        for (int at = 0; at < count; at++) {
            times[at] = (parts & 2) != 0 ? pack.getLong() : Long.MIN_VALUE;
        }
        ByteBuffer bytesOfKeys = ByteBuffer.wrap(pack.array());
        bytesOfKeys.position(pack.position() + total(values));
        for (int at = 0; at < count; at++) {
            byte[] value = taken(pack, values[at]);
            byte[] key = taken(bytesOfKeys, keys[at]);
            Long time = times[at] == Long.MIN_VALUE ? null : Long.valueOf(times[at]);
            output.collect(new StreamRecord(Row.of(new Object[] {value, key, time})));
        }
    }

    /** Those of messages; -1: there is nothing. */
    private static int[] lengths(ByteBuffer pack, int count, boolean areThere) {
        int[] lengths = new int[count];
        for (int at = 0; at < count; at++) {
            lengths[at] = areThere ? pack.getInt() : -1;
        }
        return lengths;
    }

    private static int total(int[] lengths) {
        int total = 0;
        for (int at = 0; at < lengths.length; at++) {
            total += Math.max(lengths[at], 0);
        }
        return total;
    }

    private static byte[] taken(ByteBuffer bytes, int length) {
        if (length < 0) {
            return null;
        }
        byte[] taken = new byte[length];
        bytes.get(taken);
        return taken;
    }
}
