package arroyo_udf_plugin;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.flink.api.common.serialization.Encoder;
import org.apache.flink.streaming.api.functions.sink.filesystem.PartFileInfo;
import org.apache.flink.streaming.api.functions.sink.filesystem.rollingpolicies.CheckpointRollingPolicy;

/** Each element, a byte[], is a file. Without generics, because Janino compiles it. */
public class OneFileEach extends CheckpointRollingPolicy implements Encoder {
    public void encode(Object element, OutputStream file) throws IOException {
        file.write((byte[]) element);
    }

    public boolean shouldRollOnEvent(PartFileInfo file, Object element) {
        return true;
    }

    public boolean shouldRollOnProcessingTime(PartFileInfo file, long now) {
        return false;
    }
}
