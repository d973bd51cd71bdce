import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartitionReplica;

/** Moves a replica with Java's Admin and prints where it was, is going, and has arrived. */
public final class Mover {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        TopicPartitionReplica replica = new TopicPartitionReplica(arguments[1], 0, 0);
        try (Admin admin = Admin.create(properties)) {
            System.out.println("from " + admin.describeReplicaLogDirs(java.util.List.of(replica))
                .all().get().get(replica).getCurrentReplicaLogDir());
            admin.alterReplicaLogDirs(Map.of(replica, arguments[2])).all().get();
            while (true) {
                var info = admin.describeReplicaLogDirs(java.util.List.of(replica))
                    .all().get().get(replica);
                if (info.getFutureReplicaLogDir() == null) {
                    System.out.println("to " + info.getCurrentReplicaLogDir());
                    return;
                }
                Thread.sleep(20);
            }
        }
    }
}
