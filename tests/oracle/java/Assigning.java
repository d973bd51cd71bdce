import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Assigns what each line asks for: "ASSIGNOR TOPIC=COUNT,... MEMBER:INSTANCE:TOPIC,...:TOPIC-NUMBER,... ...", with "-" for
 * nothing. Topics are called t and a digit. Prints "MEMBER:TOPIC-NUMBER,... ..." for each line.
 */
public final class Assigning {
    private Assigning() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            Map<String, Integer> counts = new TreeMap<>();
            for (String topic : parts(words[1])) {
                counts.put(topic.split("=")[0], Integer.parseInt(topic.split("=")[1]));
            }
            List<String[]> members = new ArrayList<>();
            for (int i = 2; i < words.length; i++) {
                members.add(words[i].split(":"));
            }
            Map<String, TreeSet<String>> shares = words[0].startsWith("server-")
                ? byServer(words[0], counts, members) : byLeader(words[0], counts, members);
            List<String> told = new ArrayList<>();
            shares.forEach((member, share) -> told.add(member + ":" + (share.isEmpty() ? "-" : String.join(",", share))));
            System.out.println(String.join(" ", told));
        }
    }

    private static String[] parts(String text) {
        return text.equals("-") ? new String[0] : text.split(",");
    }

    private static TopicPartition partition(String text) {
        return new TopicPartition(text.split("-")[0], Integer.parseInt(text.split("-")[1]));
    }

    private static Map<String, TreeSet<String>> byLeader(
        String name, Map<String, Integer> counts, List<String[]> members
    ) {
        Node node = new Node(0, "h", 1);
        List<PartitionInfo> infos = new ArrayList<>();
        counts.forEach((topic, count) -> {
            for (int number = 0; number < count; number++) {
                infos.add(new PartitionInfo(topic, number, node, new Node[] {node}, new Node[] {node}));
            }
        });
        Cluster cluster = new Cluster("c", List.of(node), infos, Set.of(), Set.of());
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String[] member : members) {
            List<TopicPartition> owned = new ArrayList<>();
            for (String each : parts(member[3])) {
                owned.add(partition(each));
            }
            List<String> topics = List.of(parts(member[2]));
            StickyAssignor memory = new StickyAssignor();
            memory.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("g", 1, member[0], Optional.empty()));
            Subscription subscription =
                new Subscription(topics, memory.subscriptionUserData(new HashSet<>(topics)), owned);
            subscription.setGroupInstanceId(member[1].equals("-") ? Optional.empty() : Optional.of(member[1]));
            subscriptions.put(member[0], subscription);
        }
        ConsumerPartitionAssignor assignor = name.equals("range") ? new RangeAssignor()
            : name.equals("roundrobin") ? new RoundRobinAssignor() : new StickyAssignor();
        Map<String, TreeSet<String>> shares = new TreeMap<>();
        assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment().forEach((member, assignment) -> {
            TreeSet<String> share = new TreeSet<>();
            assignment.partitions().forEach(each -> share.add(each.toString()));
            shares.put(member, share);
        });
        return shares;
    }

    private static Uuid id(String topic) {
        return new Uuid(0, 1 + Integer.parseInt(topic.substring(1)));
    }

    private static Map<String, TreeSet<String>> byServer(
        String name, Map<String, Integer> counts, List<String[]> members
    ) {
        Map<Uuid, String> names = new HashMap<>();
        counts.keySet().forEach(topic -> names.put(id(topic), topic));
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> different = new HashSet<>();
        for (String[] member : members) {
            Set<Uuid> topics = new HashSet<>();
            for (String topic : parts(member[2])) {
                topics.add(id(topic));
            }
            different.add(topics);
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            for (String each : parts(member[3])) {
                TopicPartition partition = partition(each);
                owned.computeIfAbsent(id(partition.topic()), key -> new HashSet<>()).add(partition.partition());
                owners.computeIfAbsent(id(partition.topic()), key -> new HashMap<>())
                    .put(partition.partition(), member[0]);
            }
            Optional<String> instance = member[1].equals("-") ? Optional.empty() : Optional.of(member[1]);
            specs.put(member[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, topics, new org.apache.kafka.coordinator.group.modern.Assignment(owned)));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return names.containsKey(topic) ? counts.get(names.get(topic)) : -1;
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int number) {
                return Set.of();
            }
        };
        SubscriptionType type = different.size() > 1 ? SubscriptionType.HETEROGENEOUS : SubscriptionType.HOMOGENEOUS;
        PartitionAssignor assignor = name.equals("server-range")
            ? new org.apache.kafka.coordinator.group.assignor.RangeAssignor() : new UniformAssignor();
        Map<String, TreeSet<String>> shares = new TreeMap<>();
        assignor.assign(new GroupSpecImpl(specs, type, owners), describer).members().forEach((member, assignment) -> {
            TreeSet<String> share = new TreeSet<>();
            ((MemberAssignment) assignment).partitions().forEach((topic, numbers) ->
                numbers.forEach(number -> share.add(names.get(topic) + "-" + number)));
            shares.put(member, share);
        });
        return shares;
    }
}
