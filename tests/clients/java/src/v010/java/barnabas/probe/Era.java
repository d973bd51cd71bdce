package barnabas.probe;

import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** 0.10: no record headers, no idempotent producer, no admin client. */
final class Era {
    static final boolean IDEMPOTENT = false;

    private Era() {
    }

    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long millis) {
        return consumer.poll(millis);
    }

    static ProducerRecord<byte[], byte[]> record(
        String topic, long timestamp, byte[] key, byte[] value, String headerName, String headerValue
    ) {
        return new ProducerRecord<>(topic, 0, timestamp, key, value);
    }

    static String header(ConsumerRecord<byte[], byte[]> record, String name) {
        return null;
    }

    static void admin(Report report, Properties settings, String prefix) {
        // This release has no such client.
    }
}
