package barnabas.probe;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumers of a group in one JVM, started and stopped by lines on standard input: "start NAME GROUP ASSIGNOR
 * TOPIC,TOPIC", "stop NAME", and "show", which prints what each one has and how many records it saw. The assignor
 * "consumer" or "consumer:NAME" is the broker's, by group.protocol=consumer.
 */
public final class Team {
    private static final Map<String, Player> PLAYERS = new TreeMap<>();

    private Team() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "start":
                    Player player = new Player(arguments[0], words);
                    PLAYERS.put(words[1], player);
                    player.start();
                    break;
                case "stop":
                    PLAYERS.remove(words[1]).end();
                    break;
                default:
                    show();
            }
        }
        for (Player player : PLAYERS.values()) {
            player.end();
        }
    }

    private static void show() throws InterruptedException {
        Thread.sleep(50); // Who asks until something is so asks at once again.
        StringBuilder json = new StringBuilder("{");
        for (Map.Entry<String, Player> entry : PLAYERS.entrySet()) {
            Player player = entry.getValue();
            json.append(json.length() > 1 ? "," : "").append('"').append(entry.getKey()).append("\":{\"has\":[")
                .append(player.has).append("],\"seen\":").append(player.seen)
                .append(",\"error\":\"").append(player.error).append("\"}");
        }
        System.out.println(json.append('}'));
    }

    /** One consumer and its thread; it commits what it read when it ends, and before it lets go of something. */
    private static final class Player extends Thread implements ConsumerRebalanceListener {
        volatile String has = "";
        volatile long seen;
        volatile String error = "";
        private final KafkaConsumer<byte[], byte[]> consumer;

        Player(String bootstrap, String[] words) {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("client.id", words[1]);
            settings.put("group.id", words[2]);
            if (words[3].startsWith("consumer")) {
                settings.put("group.protocol", "consumer");
                String[] assignor = words[3].split(":");
                if (assignor.length > 1) {
                    settings.put("group.remote.assignor", assignor[1]);
                }
            } else {
                settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + words[3]);
                settings.put("heartbeat.interval.ms", "200");
            }
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
            settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
            consumer = new KafkaConsumer<>(settings);
            consumer.subscribe(Arrays.asList(words[4].split(",")), this);
        }

        @Override
        public void run() {
            try {
                while (true) {
                    ConsumerRecords<byte[], byte[]> records = Era.poll(consumer, 100);
                    seen += records.count();
                    TreeSet<String> names = new TreeSet<>();
                    for (TopicPartition partition : consumer.assignment()) {
                        names.add("\"" + partition + "\"");
                    }
                    has = String.join(",", names);
                }
            } catch (WakeupException expected) {
                consumer.commitSync();
            } catch (RuntimeException unexpected) {
                error = unexpected.toString().replace('"', '\'');
            } finally {
                consumer.close();
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) {
                consumer.commitSync();
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            // It goes on where the one before has committed.
        }

        void end() throws InterruptedException {
            consumer.wakeup();
            join();
        }
    }
}
