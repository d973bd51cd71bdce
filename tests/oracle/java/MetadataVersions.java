import org.apache.kafka.server.common.MetadataVersion;

/** Prints what each metadata version means for requests between brokers. */
public class MetadataVersions {
    public static void main(String[] args) {
        System.out.println(String.join("\t", "version", "Fetch", "ListOffsets", "OffsetForLeaderEpoch",
            "WriteTxnMarkers", "asks controller", "topic ids"));
        for (MetadataVersion each : MetadataVersion.VERSIONS) {
            if (each.isLessThan(MetadataVersion.IBP_4_0_IV0)) {
                System.out.println(each.version() + "\t" + each.fetchRequestVersion()
                    + "\t" + each.listOffsetRequestVersion()
                    + "\t" + each.offsetForLeaderEpochRequestVersion()
                    + "\t" + each.writeTxnMarkersRequestVersion()
                    + "\t" + each.isAlterPartitionSupported()
                    + "\t" + each.isTopicIdsSupported());
            }
        }
    }
}
