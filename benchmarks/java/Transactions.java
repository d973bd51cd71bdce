import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Transactional producers of one process, each on a thread of its own.
 *
 * Arguments: bootstrap topic partitions producers seconds [key=value ...]. Each transaction writes a
 * record of 100 bytes to three neighbouring partitions and commits. Prints one line of JSON with the
 * transactions committed, the seconds they took and the 50th and 99th percentile in milliseconds
 * from beginTransaction to the answer to commitTransaction. Ends with exit code 1 at any error.
 */
public final class Transactions {
    private static final int RECORDS = 3;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        int producers = Integer.parseInt(args[3]);
        long nanos = Long.parseLong(args[4]) * 1_000_000_000L;
        CountDownLatch initialised = new CountDownLatch(producers);
        List<Thread> threads = new ArrayList<>();
        List<List<Long>> times = new ArrayList<>();
        List<Throwable> errors = new ArrayList<>();
        for (int number = 0; number < producers; number++) {
            List<Long> mine = new ArrayList<>();
            times.add(mine);
            int first = number;
            Thread thread = new Thread(() -> {
                try (KafkaProducer<byte[], byte[]> producer = producer(args, first)) {
                    producer.initTransactions();
                    transaction(producer, topic, partitions, first); // What only the first one pays.
                    initialised.countDown();
                    initialised.await();
                    long end = System.nanoTime() + nanos;
                    for (int turn = 0; System.nanoTime() < end; turn++) {
                        mine.add(transaction(producer, topic, partitions, first + turn));
                    }
                } catch (Throwable error) {
                    synchronized (errors) {
                        errors.add(error);
                    }
                    initialised.countDown();
                }
            });
            threads.add(thread);
            thread.start();
        }
        initialised.await();
        long began = System.nanoTime();
        for (Thread thread : threads) {
            thread.join();
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        if (!errors.isEmpty()) {
            System.err.println("ERROR " + errors.get(0));
            System.exit(1);
        }
        long[] all = times.stream().flatMap(List::stream).mapToLong(Long::longValue).sorted().toArray();
        System.out.printf(
            "{\"transactions\": %d, \"seconds\": %.3f, \"p50\": %.2f, \"p99\": %.2f}%n",
            all.length, seconds, at(all, 0.50), at(all, 0.99));
    }

    private static KafkaProducer<byte[], byte[]> producer(String[] args, int number) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("transactional.id", "bench-" + number);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        for (String setting : Arrays.asList(args).subList(5, args.length)) {
            String[] parts = setting.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        return new KafkaProducer<>(settings);
    }

    private static long transaction(
            KafkaProducer<byte[], byte[]> producer, String topic, int partitions, int turn) {
        long began = System.nanoTime();
        producer.beginTransaction();
        for (int record = 0; record < RECORDS; record++) {
            int partition = (turn + record) % partitions;
            producer.send(new ProducerRecord<>(topic, partition, null, new byte[100]));
        }
        producer.commitTransaction();
        return System.nanoTime() - began;
    }

    private static double at(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) (share * (sorted.length - 1))] / 1e6;
    }
}
