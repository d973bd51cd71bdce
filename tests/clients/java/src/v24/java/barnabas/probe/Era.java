package barnabas.probe;

import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;

/** 2.4 and later: durations, incremental config changes, records deleted up to an offset. */
final class Era {
    static final boolean IDEMPOTENT = true;

    private Era() {
    }

    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long millis) {
        return consumer.poll(Duration.ofMillis(millis));
    }

    static ProducerRecord<byte[], byte[]> record(
        String topic, long timestamp, byte[] key, byte[] value, String headerName, String headerValue
    ) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, timestamp, key, value);
        record.headers().add(headerName, headerValue.getBytes());
        return record;
    }

    static String header(ConsumerRecord<byte[], byte[]> record, String name) {
        Header header = record.headers().lastHeader(name);
        return header == null ? "" : new String(header.value());
    }

    static void admin(Report report, Properties settings, String prefix) {
        String topic = prefix + "-admin";
        report.run("admin", found -> {
            try (Admin admin = Admin.create(settings)) {
                NewTopic wanted = new NewTopic(topic, 2, (short) 1)
                    .configs(Collections.singletonMap("retention.ms", "123456"));
                admin.createTopics(Collections.singleton(wanted)).all().get();
                Report.check(admin.listTopics().names().get().contains(topic), "the new topic is not listed");
                admin.createPartitions(Collections.singletonMap(topic, NewPartitions.increaseTo(3))).all().get();
                found.put("partitions", describe(admin, topic).partitions().size());
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                Collection<AlterConfigOp> change = Collections.singleton(
                    new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND));
                admin.incrementalAlterConfigs(Collections.singletonMap(resource, change)).all().get();
                Config config = admin.describeConfigs(Collections.singleton(resource)).all().get().get(resource);
                found.put("retention", config.get("retention.ms").value());
                found.put("retentionIsDefault", config.get("retention.ms").isDefault());
                found.put("policy", config.get("cleanup.policy").value());
                deleteRecords(admin, new TopicPartition(prefix + "-none", 0), found);
                admin.deleteTopics(Collections.singleton(topic)).all().get();
                found.put("stillListed", admin.listTopics().names().get().contains(topic));
                found.put("nodes", admin.describeCluster().nodes().get().size());
                found.put("clusterId", admin.describeCluster().clusterId().get());
            }
        });
    }

    private static void deleteRecords(Admin admin, TopicPartition partition, Map<String, Object> found) throws Exception {
        RecordsToDelete before = RecordsToDelete.beforeOffset(100);
        long low = admin.deleteRecords(Collections.singletonMap(partition, before))
            .lowWatermarks().get(partition).get().lowWatermark();
        found.put("lowWatermark", low);
    }

    /** Release 3.1 gave the result's accessor another name, and 4.0 took the old one away. */
    @SuppressWarnings("unchecked")
    private static TopicDescription describe(Admin admin, String topic) throws Exception {
        DescribeTopicsResult result = admin.describeTopics(Collections.singleton(topic));
        String accessor = "all";
        for (java.lang.reflect.Method method : DescribeTopicsResult.class.getMethods()) {
            accessor = method.getName().equals("allTopicNames") ? "allTopicNames" : accessor;
        }
        Object future = DescribeTopicsResult.class.getMethod(accessor).invoke(result);
        return ((KafkaFuture<Map<String, TopicDescription>>) future).get().get(topic);
    }
}
