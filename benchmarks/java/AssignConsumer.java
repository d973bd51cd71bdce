import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads a topic from offset 0, without a consumer group, a number of times over.
 *
 * Arguments: bootstrap topic records-per-pass passes [key=value ...]. Prints one line of JSON with
 * the records and value bytes read in all passes and the milliseconds between the first poll and
 * the last record. Ends with exit code 1 when a pass makes no progress for 30 seconds.
 */
public final class AssignConsumer {
    public static void main(String[] args) {
        String topic = args[1];
        long recordsPerPass = Long.parseLong(args[2]);
        int passes = Integer.parseInt(args[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        for (int i = 4; i < args.length; i++) {
            String[] parts = args[i].split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        long records = 0;
        long bytes = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            List<TopicPartition> all = new ArrayList<>();
            for (PartitionInfo partition : consumer.partitionsFor(topic)) {
                all.add(new TopicPartition(topic, partition.partition()));
            }
            consumer.assign(all);
            long begin = System.nanoTime();
            for (int pass = 0; pass < passes; pass++) {
                for (TopicPartition partition : all) {
                    consumer.seek(partition, 0);
                }
                long wanted = records + recordsPerPass;
                long lastProgress = System.nanoTime();
                while (records < wanted) {
                    ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofMillis(500));
                    for (ConsumerRecord<byte[], byte[]> record : batch) {
                        bytes += record.value().length;
                    }
                    records += batch.count();
                    long now = System.nanoTime();
                    if (batch.count() > 0) {
                        lastProgress = now;
                    } else if (now - lastProgress > 30_000_000_000L) {
                        System.err.println("ERROR no progress at " + records + " records");
                        System.exit(1);
                    }
                }
            }
            double millis = (System.nanoTime() - begin) / 1e6;
            System.out.println("{\"records\": " + records + ", \"bytes\": " + bytes
                + ", \"ms\": " + millis + "}");
        }
    }
}
