import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.consumer.Consumer;
import kafka.consumer.ConsumerConfig;
import kafka.consumer.ConsumerIterator;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetCommitResponse;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.consumer.ConsumerConnector;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndMetadata;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/** The Scala clients of 0.8.2: a producer, a low-level consumer that commits by way of the broker, and a high-level one. */
public final class OldClient {
    private static final int RECORDS = 10;
    private static final int SEEN_BY_THE_FIRST = 7;
    private static final String GROUP = "old";

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        String zookeeper = arguments[1];
        String topic = arguments[2];
        produce(bootstrap, topic);
        String[] address = bootstrap.split(":");
        SimpleConsumer low = new SimpleConsumer(address[0], Integer.parseInt(address[1]), 60000, 1 << 16, "low");
        tell("fetched by the low-level consumer", fetched(low, topic));
        tell("offset before any commit", stored(low, topic));
        commit(low, topic, SEEN_BY_THE_FIRST);
        tell("offset after its commit", stored(low, topic));
        tell("seen by the high-level consumer", rest(zookeeper, topic));
        tell("offset after its commit too", stored(low, topic));
        low.close();
    }

    private static void produce(String bootstrap, String topic) {
        Properties settings = new Properties();
        settings.put("metadata.broker.list", bootstrap);
        settings.put("serializer.class", "kafka.serializer.StringEncoder");
        settings.put("request.required.acks", "-1");
        settings.put("request.timeout.ms", "60000");
        Producer<String, String> producer = new Producer<>(new ProducerConfig(settings));
        for (int number = 0; number < RECORDS; number++) {
            producer.send(new KeyedMessage<>(topic, "key", "value " + number));
        }
        producer.close();
    }

    private static List<String> fetched(SimpleConsumer consumer, String topic) {
        TopicAndPartition partition = new TopicAndPartition(topic, 0);
        OffsetRequest asked = new OffsetRequest(
            Collections.singletonMap(partition, new PartitionOffsetRequestInfo(kafka.api.OffsetRequest.EarliestTime(), 1)),
            kafka.api.OffsetRequest.CurrentVersion(),
            "low"
        );
        long begin = consumer.getOffsetsBefore(asked).offsets(topic, 0)[0];
        FetchResponse response = consumer.fetch(
            new kafka.api.FetchRequestBuilder().clientId("low").addFetch(topic, 0, begin, 1 << 16).build()
        );
        List<String> values = new ArrayList<>();
        for (MessageAndOffset each : response.messageSet(topic, 0)) {
            ByteBuffer payload = each.message().payload();
            byte[] bytes = new byte[payload.remaining()];
            payload.get(bytes);
            values.add(each.offset() + "=" + new String(bytes, StandardCharsets.UTF_8));
        }
        return values;
    }

    private static void commit(SimpleConsumer consumer, String topic, long offset) {
        TopicAndPartition partition = new TopicAndPartition(topic, 0);
        OffsetCommitResponse response = consumer.commitOffsets(
            new OffsetCommitRequest(
                GROUP,
                Collections.singletonMap(partition, new OffsetAndMetadata(offset, "", -1L)),
                1,
                "low",
                (short) 0
            )
        );
        if (response.hasError()) {
            throw new IllegalStateException("the commit was answered " + response.errors());
        }
    }

    /** Where the group is by the broker, or the error's number. */
    private static String stored(SimpleConsumer consumer, String topic) {
        TopicAndPartition partition = new TopicAndPartition(topic, 0);
        Map<TopicAndPartition, OffsetMetadataAndError> offsets = consumer.fetchOffsets(
            new OffsetFetchRequest(GROUP, Collections.singletonList(partition), (short) 0, 1, "low")
        ).offsets();
        OffsetMetadataAndError found = offsets.get(partition);
        return found.offset() + " (error " + found.error() + ")";
    }

    /** What the high-level consumer reads of the group's rest; it commits to ZooKeeper itself. */
    private static List<String> rest(String zookeeper, String topic) {
        Properties settings = new Properties();
        settings.put("zookeeper.connect", zookeeper);
        settings.put("group.id", GROUP);
        settings.put("offsets.storage", "zookeeper");
        settings.put("auto.commit.enable", "false");
        settings.put("auto.offset.reset", "smallest");
        settings.put("consumer.timeout.ms", "60000");
        settings.put("zookeeper.connection.timeout.ms", "60000");
        settings.put("zookeeper.session.timeout.ms", "30000");
        ConsumerConnector connector = Consumer.createJavaConsumerConnector(new ConsumerConfig(settings));
        ConsumerIterator<byte[], byte[]> records = connector
            .createMessageStreams(Collections.singletonMap(topic, 1)).get(topic).get(0).iterator();
        List<String> values = new ArrayList<>();
        while (values.size() < RECORDS - SEEN_BY_THE_FIRST) {
            MessageAndMetadata<byte[], byte[]> record = records.next();
            values.add(record.offset() + "=" + new String(record.message(), StandardCharsets.UTF_8));
        }
        connector.commitOffsets();
        connector.shutdown();
        return values;
    }

    private static void tell(String what, Object found) {
        System.out.println(what + ": " + found);
    }
}
