import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;

/**
 * Places what each line asks for: "PARTITIONS REPLICAS START FIRST BROKER:RACK ...", with "-" for no rack.
 * Prints "PARTITION:BROKER,... ..." for each line.
 */
public final class Placing {
    private Placing() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            List<BrokerMetadata> brokers = new ArrayList<>();
            for (int at = 4; at < words.length; at++) {
                String[] broker = words[at].split(":");
                Optional<String> rack = broker[1].equals("-") ? Optional.empty() : Optional.of(broker[1]);
                brokers.add(new BrokerMetadata(Integer.parseInt(broker[0]), rack));
            }
            Map<Integer, List<Integer>> placed = new TreeMap<>(AdminUtils.assignReplicasToBrokers(
                brokers, Integer.parseInt(words[0]), Integer.parseInt(words[1]),
                Integer.parseInt(words[2]), Integer.parseInt(words[3])));
            List<String> said = new ArrayList<>();
            placed.forEach((partition, replicas) -> said.add(
                partition + ":" + String.join(",", replicas.stream().map(String::valueOf).toList())));
            System.out.println(String.join(" ", said));
        }
    }
}
