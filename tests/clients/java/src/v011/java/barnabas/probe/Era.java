package barnabas.probe;

import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;

/** 0.11 to 1.1: the first admin client, waiting counted in milliseconds. */
final class Era {
    static final boolean IDEMPOTENT = true;

    private Era() {
    }

    static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer, long millis) {
        return consumer.poll(millis);
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
            try (AdminClient admin = AdminClient.create(settings)) {
                NewTopic wanted = new NewTopic(topic, 3, (short) 1)
                    .configs(Collections.singletonMap("retention.ms", "123456"));
                admin.createTopics(Collections.singleton(wanted)).all().get();
                Report.check(admin.listTopics().names().get().contains(topic), "the new topic is not listed");
                Map<String, TopicDescription> described = admin.describeTopics(Collections.singleton(topic)).all().get();
                found.put("partitions", described.get(topic).partitions().size());
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
                Config config = admin.describeConfigs(Collections.singleton(resource)).all().get().get(resource);
                found.put("retention", config.get("retention.ms").value());
                found.put("retentionIsDefault", config.get("retention.ms").isDefault());
                found.put("policy", config.get("cleanup.policy").value());
                admin.deleteTopics(Collections.singleton(topic)).all().get();
                found.put("stillListed", admin.listTopics().names().get().contains(topic));
                found.put("nodes", admin.describeCluster().nodes().get().size());
            }
        });
    }
}
