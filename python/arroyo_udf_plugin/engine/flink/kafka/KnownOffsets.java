package arroyo_udf_plugin;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.OffsetResetStrategy;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.TopicPartition;

/**
 * Offsets that were known when the job was submitted; a partition that is newer is read from its first message on. An
 * offset that the topic does not have is an error. Without generics, because Janino compiles it.
 */
public class KnownOffsets implements OffsetsInitializer {
    private final HashMap offsets = new HashMap();

    public void put(int partition, long offset) {
        offsets.put(Integer.valueOf(partition), Long.valueOf(offset));
    }

    public Map getPartitionOffsets(Collection partitions, OffsetsInitializer.PartitionOffsetsRetriever topic) {
        Map found = new HashMap();
        List others = new ArrayList();
        for (Iterator each = partitions.iterator(); each.hasNext();) {
            TopicPartition partition = (TopicPartition) each.next();
            Object offset = offsets.get(Integer.valueOf(partition.partition()));
            if (offset == null) {
                others.add(partition);
            } else {
                found.put(partition, offset);
            }
        }
        if (!others.isEmpty()) {
            found.putAll(topic.beginningOffsets(others));
        }
        return found;
    }

    public OffsetResetStrategy getAutoOffsetResetStrategy() {
        return OffsetResetStrategy.NONE;
    }
}
