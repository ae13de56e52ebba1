package arroyo_udf_plugin;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.kafka.shaded.org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.header.Header;
import org.apache.flink.kafka.shaded.org.apache.kafka.common.record.TimestampType;
import org.apache.flink.util.Collector;

/**
 * A message of Kafka as bytes: its partition, then its head (see packed.py), then key, value and headers. Without
 * generics, because Janino compiles it.
 */
public class ReadsRecords implements KafkaRecordDeserializationSchema {
    private static final byte[] NOTHING = new byte[0];

    public void deserialize(ConsumerRecord record, Collector out) {
        byte[] key = (byte[]) record.key();
        byte[] value = (byte[]) record.value();
        byte[] headers = headersOf(record.headers().toArray());
        int size = 32 + lengthOf(key) + lengthOf(value) + headers.length;
        boolean hasTime = record.timestampType() != TimestampType.NO_TIMESTAMP_TYPE;
        ByteBuffer bytes = ByteBuffer.allocate(size);
        bytes.putInt(record.partition());
        bytes.putLong(record.offset());
        bytes.putLong(hasTime ? record.timestamp() : Long.MIN_VALUE);
        bytes.putInt(key == null ? -1 : key.length);
        bytes.putInt(value == null ? -1 : value.length);
        bytes.putInt(headers.length);
        bytes.put(key == null ? NOTHING : key);
        bytes.put(value == null ? NOTHING : value);
        bytes.put(headers);
        out.collect(bytes.array());
    }

    private static int lengthOf(byte[] bytes) {
        return bytes == null ? 0 : bytes.length;
    }

    /** For each: the length of its name, that of its value (-1: there is none), and both. */
    private static byte[] headersOf(Header[] headers) {
        if (headers.length == 0) {
            return NOTHING;
        }
        int size = 0;
        for (int at = 0; at < headers.length; at++) {
            size += 8 + headers[at].key().getBytes(StandardCharsets.UTF_8).length + lengthOf(headers[at].value());
        }
        ByteBuffer bytes = ByteBuffer.allocate(size);
        for (int at = 0; at < headers.length; at++) {
            byte[] name = headers[at].key().getBytes(StandardCharsets.UTF_8);
            byte[] value = headers[at].value();
            bytes.putInt(name.length);
            bytes.putInt(value == null ? -1 : value.length);
            bytes.put(name);
            bytes.put(value == null ? NOTHING : value);
        }
        return bytes.array();
    }

    public TypeInformation getProducedType() {
        return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
    }
}
