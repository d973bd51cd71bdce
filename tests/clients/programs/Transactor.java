import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** One story of transactions between two topics of three partitions; prints a line for each thing it sees. */
public final class Transactor {
    private static final int PARTITIONS = 3;
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        String from = arguments[1];
        String to = arguments[2];
        endings(from);
        copying(from, to);
        fencing(to);
        tell("committed in the second", seen(to, "read_committed", 7));
        tell("written in the second", seen(to, "read_uncommitted", 12));
    }

    /** A commit, an abort, a commit; the producer's own close ends what is open. */
    private static void endings(String topic) throws Exception {
        try (KafkaProducer<String, String> producer = producer("endings-" + topic)) {
            write(producer, topic, "a", "b", "c");
            producer.commitTransaction();
            write(producer, topic, "never");
            producer.abortTransaction();
            write(producer, topic, "d");
            producer.commitTransaction();
            write(producer, topic, "left open");
        }
        tell("committed in the first", seen(topic, "read_committed", 4));
    }

    /** Read, write and commit offsets as one: thrown away the first time, kept the second. */
    private static void copying(String from, String to) throws Exception {
        String group = "copies-" + from;
        try (KafkaProducer<String, String> producer = producer("copying-" + from)) {
            for (String ending : List.of("abort", "commit")) {
                try (KafkaConsumer<String, String> consumer = consumer(group, "read_committed")) {
                    consumer.subscribe(List.of(from));
                    List<ConsumerRecord<String, String>> taken = poll(consumer, 4);
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (ConsumerRecord<String, String> record : taken) {
                        producer.send(new ProducerRecord<>(to, record.value().toUpperCase())).get();
                        offsets.merge(new TopicPartition(from, record.partition()),
                            new OffsetAndMetadata(record.offset() + 1),
                            (one, other) -> one.offset() > other.offset() ? one : other);
                    }
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    if (ending.equals("abort")) {
                        producer.abortTransaction();
                    } else {
                        producer.commitTransaction();
                    }
                    Map<TopicPartition, OffsetAndMetadata> committed = new HashMap<>(consumer.committed(partitions(from)));
                    committed.values().removeAll(Collections.singleton(null));
                    tell("offsets after the " + ending, committed.equals(offsets) ? "all" : committed.isEmpty() ? "none" : committed);
                }
            }
            producer.beginTransaction();
            try {
                producer.sendOffsetsToTransaction(Map.of(new TopicPartition(from, 0), new OffsetAndMetadata(0)),
                    new ConsumerGroupMetadata(group, 77, "nobody", java.util.Optional.empty()));
                tell("offsets of a stranger", "taken");
            } catch (RuntimeException refused) {
                tell("offsets of a stranger", refused.getClass().getSimpleName());
            }
            producer.abortTransaction();
        }
    }

    /** A second producer of the same id: it goes on, and the first one is shut out for good. */
    private static void fencing(String topic) throws Exception {
        String id = "fencing-" + topic;
        KafkaProducer<String, String> first = producer(id);
        write(first, topic, "first");
        try (KafkaProducer<String, String> second = producer(id)) {
            write(second, topic, "second");
            try {
                first.commitTransaction();
                tell("the first", "commits");
            } catch (RuntimeException fenced) {
                tell("the first", fenced.getClass().getSimpleName());
            }
            second.commitTransaction();
            write(second, topic, "third", "fourth");
            second.commitTransaction();
        }
        try {
            first.beginTransaction();
            tell("and then", "begins");
        } catch (RuntimeException fenced) {
            tell("and then", fenced.getCause() == null ? fenced.getClass().getSimpleName() : fenced.getCause().getClass().getSimpleName());
        }
        first.close(Duration.ZERO);
    }

    private static void write(KafkaProducer<String, String> producer, String topic, String... values) throws Exception {
        producer.beginTransaction();
        for (int number = 0; number < values.length; number++) {
            producer.send(new ProducerRecord<>(topic, number % PARTITIONS, null, values[number])).get();
        }
    }

    private static List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> consumer, int count) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        while (found.size() < count) {
            consumer.poll(Duration.ofMillis(200)).forEach(found::add);
        }
        return found;
    }

    /** All up to the end that this isolation level may read to, at least `count`. */
    private static Set<String> seen(String topic, String isolation, int count) {
        Set<String> values = new TreeSet<>();
        try (KafkaConsumer<String, String> consumer = consumer("readers", isolation)) {
            consumer.assign(partitions(topic));
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions(topic));
            List<ConsumerRecord<String, String>> found = poll(consumer, count);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                consumer.poll(Duration.ofMillis(200)).forEach(found::add);
            }
            for (ConsumerRecord<String, String> record : found) {
                values.add(values.contains(record.value()) ? record.value() + " again" : record.value());
            }
        }
        return values;
    }

    private static Set<TopicPartition> partitions(String topic) {
        Set<TopicPartition> all = new java.util.HashSet<>();
        for (int number = 0; number < PARTITIONS; number++) {
            all.add(new TopicPartition(topic, number));
        }
        return all;
    }

    private static KafkaProducer<String, String> producer(String id) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        return producer;
    }

    private static KafkaConsumer<String, String> consumer(String group, String isolation) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        return new KafkaConsumer<>(settings);
    }

    private static void tell(String what, Object seen) {
        System.out.println(what + ": " + seen);
    }
}
