"""Consumer groups, their offsets, transactions and producer ids."""

from __future__ import annotations

from ..declare import (
    INT_MAX,
    all_of,
    at_least,
    between,
    boolean,
    integer,
    long,
    one_of,
    short,
    string,
    words,
)
from ..definitions import Importance, Served, UpdateMode
from .notes import NO_SHARES

GROUP_MIN_SESSION_TIMEOUT_MS = integer(
    "group.min.session.timeout.ms",
    6000,
    "Shortest session a group member may ask for.",
)
GROUP_MAX_SESSION_TIMEOUT_MS = integer(
    "group.max.session.timeout.ms",
    1_800_000,
    "Longest session a group member may ask for.",
)
GROUP_INITIAL_REBALANCE_DELAY_MS = integer(
    "group.initial.rebalance.delay.ms",
    3000,
    "How long a new group waits for more members before its first rebalance.",
)
GROUP_MAX_SIZE = integer(
    "group.max.size",
    INT_MAX,
    "Most members of one group; 10,000 unless given.",
    rule=at_least(1),
)
GROUP_COORDINATOR_REBALANCE_PROTOCOLS = words(
    "group.coordinator.rebalance.protocols",
    ("classic",),
    "Rebalance protocols that groups may use; classic and consumer unless given.",
    rule=all_of("consumer", "classic", "share", "unknown"),
)
GROUP_COORDINATOR_THREADS = integer(
    "group.coordinator.threads",
    1,
    "Threads of the new group coordinator.",
    rule=at_least(1),
    served=Served.NEVER,
    note="Coordinators live on the event loop.",
)
GROUP_COORDINATOR_APPEND_LINGER_MS = integer(
    "group.coordinator.append.linger.ms",
    10,
    "How long the new group coordinator gathers writes.",
    rule=at_least(0),
    served=Served.NEVER,
    note="Coordinators live on the event loop.",
)
GROUP_COORDINATOR_NEW_ENABLE = boolean(
    "group.coordinator.new.enable",
    False,
    "Whether the new group coordinator is used.",
    served=Served.NEVER,
    note="There is one group coordinator.",
    internal=True,
)
GROUP_CONSUMER_SESSION_TIMEOUT_MS = integer(
    "group.consumer.session.timeout.ms",
    45_000,
    "Session of members that use the consumer protocol.",
    rule=at_least(1),
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS = integer(
    "group.consumer.min.session.timeout.ms",
    45_000,
    "Shortest session of members that use the consumer protocol; a bound of the session chosen.",
    rule=at_least(1),
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS = integer(
    "group.consumer.max.session.timeout.ms",
    60_000,
    "Longest session of members that use the consumer protocol; a bound of the session chosen.",
    rule=at_least(1),
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.heartbeat.interval.ms",
    5000,
    "Heartbeat of members that use the consumer protocol.",
    rule=at_least(1),
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.min.heartbeat.interval.ms",
    5000,
    "Shortest heartbeat of members that use the consumer protocol; a bound of the one chosen.",
    rule=at_least(1),
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.max.heartbeat.interval.ms",
    15_000,
    "Longest heartbeat of members that use the consumer protocol; a bound of the one chosen.",
    rule=at_least(1),
)
GROUP_CONSUMER_MAX_SIZE = integer(
    "group.consumer.max.size",
    INT_MAX,
    "Most members of a group that uses the consumer protocol.",
    rule=at_least(1),
)
GROUP_CONSUMER_ASSIGNORS = words(
    "group.consumer.assignors",
    (
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
    ),
    "Assignors on the broker, the first being the default.",
)
GROUP_CONSUMER_MIGRATION_POLICY = string(
    "group.consumer.migration.policy",
    "disabled",
    "Which way groups may change between the classic and the consumer protocol while they have "
    "members; bidirectional unless given.",
    rule=one_of("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL", ignore_case=True),
    internal=True,
)
GROUP_SHARE_ENABLE = boolean(
    "group.share.enable",
    False,
    "Whether share groups are offered.",
    served=Served.NEVER,
    note=NO_SHARES,
    internal=True,
)
GROUP_SHARE_SESSION_TIMEOUT_MS = integer(
    "group.share.session.timeout.ms",
    45_000,
    "Session of share group members.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MIN_SESSION_TIMEOUT_MS = integer(
    "group.share.min.session.timeout.ms",
    45_000,
    "Shortest session of share group members.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MAX_SESSION_TIMEOUT_MS = integer(
    "group.share.max.session.timeout.ms",
    60_000,
    "Longest session of share group members.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.heartbeat.interval.ms",
    5000,
    "Heartbeat of share group members.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.min.heartbeat.interval.ms",
    5000,
    "Shortest heartbeat of share group members.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.max.heartbeat.interval.ms",
    15_000,
    "Longest heartbeat of share group members.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MAX_SIZE = short(
    "group.share.max.size",
    200,
    "Most members of a share group.",
    rule=between(10, 1000),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MAX_GROUPS = short(
    "group.share.max.groups",
    10,
    "Most share groups.",
    rule=between(1, 100),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_DELIVERY_COUNT_LIMIT = integer(
    "group.share.delivery.count.limit",
    5,
    "How often a record is delivered to a share group before it counts as failed.",
    rule=between(2, 10),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_RECORD_LOCK_DURATION_MS = integer(
    "group.share.record.lock.duration.ms",
    30_000,
    "How long a share group member holds a record.",
    rule=between(1000, 60_000),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS = integer(
    "group.share.min.record.lock.duration.ms",
    15_000,
    "Shortest hold a share group may set.",
    rule=between(1000, 30_000),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS = integer(
    "group.share.max.record.lock.duration.ms",
    60_000,
    "Longest hold a share group may set.",
    rule=between(30_000, 3_600_000),
    served=Served.NEVER,
    note=NO_SHARES,
)
GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.partition.max.record.locks",
    200,
    "Records of a partition that share group members hold at once.",
    rule=between(100, 10_000),
    served=Served.NEVER,
    note=NO_SHARES,
)
OFFSET_METADATA_MAX_BYTES = integer(
    "offset.metadata.max.bytes",
    4096,
    "Longest text that may accompany a committed offset.",
    importance=Importance.HIGH,
)
OFFSETS_LOAD_BUFFER_SIZE = integer(
    "offsets.load.buffer.size",
    5_242_880,
    "Bytes read at a time when a coordinator loads its offsets.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_TOPIC_REPLICATION_FACTOR = short(
    "offsets.topic.replication.factor",
    3,
    "Replicas of the offsets topic. A broker without ZooKeeper makes one unless this is set.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_TOPIC_NUM_PARTITIONS = integer(
    "offsets.topic.num.partitions",
    50,
    "Partitions of the offsets topic; never change it once the topic exists.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_TOPIC_SEGMENT_BYTES = integer(
    "offsets.topic.segment.bytes",
    104_857_600,
    "Segment size of the offsets topic; small ones load and compact faster.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_TOPIC_COMPRESSION_CODEC = integer(
    "offsets.topic.compression.codec",
    0,
    "Number of the codec for the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    importance=Importance.HIGH,
)
OFFSETS_RETENTION_MINUTES = integer(
    "offsets.retention.minutes",
    10_080,
    "How long the offsets of an empty group are kept.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = long(
    "offsets.retention.check.interval.ms",
    600_000,
    "Time between two searches for offsets to forget.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_COMMIT_TIMEOUT_MS = integer(
    "offsets.commit.timeout.ms",
    5000,
    "How long a commit may wait for the replicas of the offsets topic.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
OFFSETS_COMMIT_REQUIRED_ACKS = short(
    "offsets.commit.required.acks",
    -1,
    "Acks a commit waits for; leave it at -1.",
    importance=Importance.HIGH,
    served=Served.LATER,
)
TRANSACTION_STATE_LOG_MIN_ISR = integer(
    "transaction.state.log.min.isr",
    2,
    "Least in-sync replicas of the transaction topic for a write to it.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE = integer(
    "transaction.state.log.load.buffer.size",
    5_242_880,
    "Bytes read at a time when a coordinator loads its transactions.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = short(
    "transaction.state.log.replication.factor",
    3,
    "Replicas of the transaction topic.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS = integer(
    "transaction.state.log.num.partitions",
    50,
    "Partitions of the transaction topic; never change it once the topic exists.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = integer(
    "transaction.state.log.segment.bytes",
    104_857_600,
    "Segment size of the transaction topic.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = boolean(
    "transaction.partition.verification.enable",
    True,
    "Whether a partition asks the coordinator if a transaction is really open.",
    importance=Importance.LOW,
    update=UpdateMode.CLUSTER_WIDE,
)
TRANSACTION_MAX_TIMEOUT_MS = integer(
    "transaction.max.timeout.ms",
    900_000,
    "Longest a transaction may stay open.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = integer(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
    "Time between two searches for transactions that took too long.",
    rule=at_least(1),
    importance=Importance.LOW,
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = integer(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    "Time between two searches for transactional ids to forget.",
    rule=at_least(1),
    importance=Importance.LOW,
)
TRANSACTIONAL_ID_EXPIRATION_MS = integer(
    "transactional.id.expiration.ms",
    604_800_000,
    "How long an unused transactional id is remembered.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
PRODUCER_ID_EXPIRATION_MS = integer(
    "producer.id.expiration.ms",
    86_400_000,
    "How long a partition remembers an idempotent producer that writes nothing.",
    rule=at_least(1),
    importance=Importance.LOW,
    update=UpdateMode.CLUSTER_WIDE,
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = integer(
    "producer.id.expiration.check.interval.ms",
    600_000,
    "Time between two searches for producers to forget.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.LATER,
    internal=True,
)
