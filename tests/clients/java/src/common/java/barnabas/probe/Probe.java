package barnabas.probe;

import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Drives one broker with one release of kafka-clients and prints a line of JSON for each case.
 *
 * Arguments: bootstrap, topic prefix (the topics "prefix-codec" exist), codecs, a topic that another
 * client filled, and one it filled with zstd. What differs between releases is in class Era.
 */
public final class Probe {
    private static final int RECORDS = 300;
    private static final int LARGE = 200_000;
    /** An hour ago: much older records would fall to retention. */
    private static final long START = System.currentTimeMillis() / 1000 * 1000 - 3_600_000;
    private static final long PATIENCE_MS = 15_000;

    private final String bootstrap;
    private final String prefix;
    private final Report report = new Report();

    private Probe(String bootstrap, String prefix) {
        this.bootstrap = bootstrap;
        this.prefix = prefix;
    }

    public static void main(String[] args) {
        Probe probe = new Probe(args[0], args[1]);
        for (String codec : args[2].split(",")) {
            probe.report.run("roundtrip-" + codec, found -> probe.roundTrip(found, codec, "all", false));
        }
        probe.report.run("acks-1", found -> probe.roundTrip(found, "none", "1", false));
        probe.report.run("acks-0", found -> probe.acknowledgedByNobody(found));
        if (Era.IDEMPOTENT) {
            probe.report.run("idempotent", found -> probe.roundTrip(found, "none", "all", true));
        }
        probe.report.run("foreign", found -> probe.read(found, args[3]));
        probe.report.run("foreign-zstd", found -> probe.read(found, args[4]));
        Era.admin(probe.report, probe.common(), probe.prefix);
    }

    private Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "10000");
        return settings;
    }

    private KafkaProducer<byte[], byte[]> producer(String codec, String acks, boolean idempotent) {
        Properties settings = common();
        settings.put("compression.type", codec);
        settings.put("acks", acks);
        settings.put("linger.ms", "5");
        settings.put("max.block.ms", "10000");
        if (Era.IDEMPOTENT) {
            settings.put("enable.idempotence", String.valueOf(idempotent));
        }
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        Properties settings = common();
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        // The old consumer refuses a request timeout below its session and fetch waits.
        settings.put("session.timeout.ms", "9000");
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static byte[] key(int i) {
        return i % 7 == 0 ? null : ("key-" + i % 50).getBytes();
    }

    private static byte[] value(int i) {
        if (i % 11 == 0) {
            return null;
        }
        byte[] value = new byte[i == RECORDS / 2 ? LARGE : i % 13 == 0 ? 0 : i * 7];
        for (int at = 0; at < value.length; at++) {
            value[at] = (byte) (at * 31 + i ^ at >> 8);
        }
        return value;
    }

    private void roundTrip(Map<String, Object> found, String codec, String acks, boolean idempotent) throws Exception {
        TopicPartition partition = new TopicPartition(prefix + "-" + codec, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(Collections.singletonList(partition));
            consumer.seekToEnd(Collections.singletonList(partition));
            long first = consumer.position(partition);
            send(partition, codec, acks, idempotent, first);
            if (first == 0) {
                consumer.seekToBeginning(Collections.singletonList(partition));
            } else {
                consumer.seek(partition, first);
            }
            List<ConsumerRecord<byte[], byte[]>> records = take(consumer, RECORDS);
            for (int i = 0; i < RECORDS; i++) {
                compare(records.get(i), i, first + i);
            }
            timestamps(consumer, partition, first);
            found.put("records", records.size());
            found.put("sha256", digest(records));
        }
    }

    private void send(TopicPartition partition, String codec, String acks, boolean idempotent, long first) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<Exception> failures = Collections.synchronizedList(new ArrayList<>());
        try (KafkaProducer<byte[], byte[]> producer = producer(codec, acks, idempotent)) {
            for (int i = 0; i < RECORDS; i++) {
                ProducerRecord<byte[], byte[]> record =
                    Era.record(partition.topic(), START + i * 10L, key(i), value(i), "index", Integer.toString(i));
                sent.add(producer.send(record, (metadata, failure) -> {
                    if (failure != null) {
                        failures.add(failure);
                    }
                }));
                if (i < 5) {
                    sent.get(i).get();
                }
            }
        }
        for (int i = 0; i < RECORDS; i++) {
            RecordMetadata metadata = sent.get(i).get();
            Report.check(metadata.offset() == first + i, "record " + i + " was put at " + metadata.offset());
            Report.check(metadata.timestamp() == START + i * 10L, "timestamp of record " + i + " changed");
        }
        Report.check(failures.isEmpty(), "callbacks failed: " + failures);
    }

    private static void compare(ConsumerRecord<byte[], byte[]> record, int i, long offset) {
        Report.check(record.offset() == offset, "offset " + record.offset() + " for " + offset);
        Report.check(record.timestamp() == START + i * 10L, "timestamp " + record.timestamp() + " at " + offset);
        Report.check(Arrays.equals(record.key(), key(i)), "another key at " + offset);
        Report.check(Arrays.equals(record.value(), value(i)), "another value at " + offset);
        String header = Era.header(record, "index");
        Report.check(header == null || header.equals(Integer.toString(i)), "header " + header + " at " + offset);
    }

    private void timestamps(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long first) {
        Report.check(consumer.beginningOffsets(Collections.singletonList(partition)).get(partition) == 0, "beginning");
        long end = consumer.endOffsets(Collections.singletonList(partition)).get(partition);
        Report.check(end == first + RECORDS, "end offset " + end);
        OffsetAndTimestamp late = consumer.offsetsForTimes(
            Collections.singletonMap(partition, START + RECORDS * 10L)).get(partition);
        Report.check(late == null, "something is later than the last record: " + late);
        if (first == 0) {
            // Between two records the later one answers.
            OffsetAndTimestamp middle = consumer.offsetsForTimes(
                Collections.singletonMap(partition, START + 1234L)).get(partition);
            Report.check(middle.offset() == 124 && middle.timestamp() == START + 1240, "found " + middle);
        }
    }

    private void acknowledgedByNobody(Map<String, Object> found) throws Exception {
        TopicPartition partition = new TopicPartition(prefix + "-acks0", 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            try (KafkaProducer<byte[], byte[]> producer = producer("none", "0", false)) {
                for (int i = 0; i < 50; i++) {
                    RecordMetadata metadata = producer.send(
                        Era.record(partition.topic(), START, key(i), value(i), "index", Integer.toString(i))).get();
                    Report.check(metadata.offset() == -1, "an offset without an answer: " + metadata.offset());
                }
            }
            consumer.assign(Collections.singletonList(partition));
            consumer.seekToBeginning(Collections.singletonList(partition));
            found.put("records", take(consumer, 50).size());
        }
    }

    private void read(Map<String, Object> found, String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(Collections.singletonList(partition));
            long end = consumer.endOffsets(Collections.singletonList(partition)).get(partition);
            consumer.seekToBeginning(Collections.singletonList(partition));
            List<ConsumerRecord<byte[], byte[]>> records = take(consumer, (int) end);
            found.put("records", records.size());
            found.put("sha256", digest(records));
        }
    }

    private static List<ConsumerRecord<byte[], byte[]>> take(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (records.size() < count) {
            Report.check(System.currentTimeMillis() < deadline, "only " + records.size() + " of " + count + " came");
            Era.poll(consumer, 200).forEach(records::add);
        }
        Report.check(records.size() == count, records.size() + " records where " + count + " were sent");
        return records;
    }

    /** Over keys and values in order, null told from empty, so that another client can compare. */
    private static String digest(List<ConsumerRecord<byte[], byte[]>> records) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (ConsumerRecord<byte[], byte[]> record : records) {
            for (byte[] part : new byte[][] {record.key(), record.value()}) {
                digest.update((part == null ? "-" : part.length + ":").getBytes());
                digest.update(part == null ? new byte[0] : part);
            }
        }
        StringBuilder text = new StringBuilder();
        for (byte b : digest.digest()) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }
}
