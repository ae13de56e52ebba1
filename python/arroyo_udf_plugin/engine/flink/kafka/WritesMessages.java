package arroyo_udf_plugin;

import java.util.zip.CRC32;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.flink.types.Row;

/**
 * Rows of UnpacksMessages as messages of a topic. A key has the partition that librdkafka would choose, so that both
 * engines choose the same. Without generics, because Janino compiles it.
 */
public class WritesMessages implements KafkaRecordSerializationSchema {
    private String topic;
    private boolean isLikeJava;

    public void setTopic(String topic) {
        this.topic = topic;
    }

    /** Partitions are those of Kafka's own client. */
    public void setLikeJava(boolean isLikeJava) {
        this.isLikeJava = isLikeJava;
    }

    public ProducerRecord serialize(
            Object element, KafkaRecordSerializationSchema.KafkaSinkContext context, Long timestamp) {
        Row message = (Row) element;
        byte[] value = (byte[]) message.getField(0);
        byte[] key = (byte[]) message.getField(1);
        Integer partition = null;
        if (key != null && key.length > 0 && !isLikeJava) {
            CRC32 sum = new CRC32();
            sum.update(key);
            partition = Integer.valueOf((int) (sum.getValue() % context.getPartitionsForTopic(topic).length));
        }
        return new ProducerRecord(topic, partition, (Long) message.getField(2), (Object) key, (Object) value);
    }
}
