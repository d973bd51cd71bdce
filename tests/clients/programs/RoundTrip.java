import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Produces records to a topic, reads them back and prints each in a line.
 *
 * Arguments: the topic, and how many records. Standard input holds the client's properties. It has
 * to compile with each release of kafka-clients since 0.10.2.
 */
public final class RoundTrip {
    private static final String TEXT = "org.apache.kafka.common.serialization.String";

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.load(System.in);
        // Releases from 4.0 on read tokens from nowhere else.
        String tokens = properties.getProperty("sasl.oauthbearer.token.endpoint.url", "");
        System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", tokens);
        properties.setProperty("acks", "all");
        properties.setProperty("key.serializer", TEXT + "Serializer");
        properties.setProperty("value.serializer", TEXT + "Serializer");
        properties.setProperty("key.deserializer", TEXT + "Deserializer");
        properties.setProperty("value.deserializer", TEXT + "Deserializer");
        int count = Integer.parseInt(args[1]);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            for (int number = 0; number < count; number++) {
                // The first one that fails ends it.
                producer.send(new ProducerRecord<>(args[0], "record " + number)).get();
            }
        }
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties)) {
            TopicPartition partition = new TopicPartition(args[0], 0);
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, 0);
            while (count > 0) {
                for (ConsumerRecord<String, String> record : poll(consumer)) {
                    System.out.println(record.value());
                    count--;
                }
            }
        }
    }

    /** By a number of milliseconds before 2.0; releases from 4.0 on have no such method. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            Method poll = KafkaConsumer.class.getMethod("poll", Duration.class);
            return (ConsumerRecords<String, String>) poll.invoke(consumer, Duration.ofSeconds(1));
        } catch (NoSuchMethodException old) {
            Method poll = KafkaConsumer.class.getMethod("poll", long.class);
            return (ConsumerRecords<String, String>) poll.invoke(consumer, 1000L);
        }
    }
}
