package arroyo_udf_plugin;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.operators.ProcessingTimeService;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.BoundedOneInput;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.types.Row;

/**
 * Messages of ReadsRecords, many of one partition as one record for the slice of that partition (see packed.py). None
 * stays here when a checkpoint begins. Without generics, because Janino compiles it.
 */
public class PacksRecords extends AbstractStreamOperator
        implements OneInputStreamOperator, BoundedOneInput, ProcessingTimeService.ProcessingTimeCallback {
    private static final int RECORDS = -4;
    private static final int MOST = 8192;
    private static final int MOST_BYTES = 1 << 20;
    private static final long EVERY = 20;
    private static final int HEAD = 28;

    private int[] keys;
    private transient Map packs;

    /** Of the slices. */
    public void setKeys(int[] keys) {
        this.keys = keys;
    }

    public void open() {
        packs = new TreeMap();
        getProcessingTimeService().scheduleWithFixedDelay(this, EVERY, EVERY);
    }

    public void processElement(StreamRecord element) {
        byte[] message = (byte[]) element.getValue();
        Integer partition = Integer.valueOf(ByteBuffer.wrap(message).getInt());
        ByteArrayOutputStream[] pack = (ByteArrayOutputStream[]) packs.get(partition);
        if (pack == null) {
            pack = new ByteArrayOutputStream[] {new ByteArrayOutputStream(), new ByteArrayOutputStream()};
            packs.put(partition, pack);
        }
        pack[0].write(message, 4, HEAD);
        pack[1].write(message, 4 + HEAD, message.length - 4 - HEAD);
        if (pack[0].size() >= MOST * HEAD || pack[1].size() >= MOST_BYTES) {
            send(partition.intValue(), pack);
        }
    }

    public void onProcessingTime(long time) {
        sendAll();
    }

    public void prepareSnapshotPreBarrier(long checkpoint) {
        sendAll();
    }

    public void endInput() {
        sendAll();
    }

    private void sendAll() {
        for (Iterator each = packs.entrySet().iterator(); each.hasNext();) {
            Map.Entry pack = (Map.Entry) each.next();
            send(((Integer) pack.getKey()).intValue(), (ByteArrayOutputStream[]) pack.getValue());
        }
    }

    private void send(int partition, ByteArrayOutputStream[] pack) {
        int count = pack[0].size() / HEAD;
        if (count == 0) {
            return;
        }
        ByteBuffer bytes = ByteBuffer.allocate(8 + pack[0].size() + pack[1].size());
        bytes.putInt(partition);
        bytes.putInt(count);
        bytes.put(pack[0].toByteArray());
        bytes.put(pack[1].toByteArray());
        pack[0].reset();
        pack[1].reset();
        int slice = partition % keys.length;
        Row posted = Row.of(new Object[] {RECORDS, slice, bytes.array()});
        output.collect(new StreamRecord(Row.of(new Object[] {keys[slice], posted})));
    }
}
