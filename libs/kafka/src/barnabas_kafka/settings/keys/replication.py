"""Replicas, leaders and the controller that appoints them."""

from __future__ import annotations

from ..declare import at_least, boolean, integer, long, string
from ..definitions import Importance, Served, UpdateMode

MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas",
    1,
    "Replicas that must hold a record before a producer with acks=all is answered.",
    rule=at_least(1),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    "Whether a replica that is behind may lead when no other is left, at the price of records.",
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
UNCLEAN_LEADER_ELECTION_INTERVAL_MS = long(
    "unclean.leader.election.interval.ms",
    300_000,
    "Time between two looks for partitions that wait for an unclean election.",
    rule=at_least(1),
    served=Served.NEVER,
    note="Elections follow events, not a clock.",
    internal=True,
)
REPLICA_LAG_TIME_MAX_MS = long(
    "replica.lag.time.max.ms",
    30_000,
    "A follower that has not caught up for so long leaves the in-sync replicas.",
    importance=Importance.HIGH,
)
REPLICA_SOCKET_TIMEOUT_MS = integer(
    "replica.socket.timeout.ms",
    30_000,
    "How long a follower's request may take.",
    importance=Importance.HIGH,
)
REPLICA_SOCKET_RECEIVE_BUFFER_BYTES = integer(
    "replica.socket.receive.buffer.bytes",
    65_536,
    "Receive buffer of a follower's socket; -1 leaves it to the operating system.",
    importance=Importance.HIGH,
    served=Served.LATER,
)
REPLICA_FETCH_MAX_BYTES = integer(
    "replica.fetch.max.bytes",
    1_048_576,
    "Most bytes a follower asks for per partition.",
    rule=at_least(0),
)
REPLICA_FETCH_WAIT_MAX_MS = integer(
    "replica.fetch.wait.max.ms",
    500,
    "Longest a follower's fetch waits for records; keep it below replica.lag.time.max.ms.",
    importance=Importance.HIGH,
)
REPLICA_FETCH_BACKOFF_MS = integer(
    "replica.fetch.backoff.ms",
    1000,
    "Pause of a follower after an error.",
    rule=at_least(0),
)
REPLICA_FETCH_MIN_BYTES = integer(
    "replica.fetch.min.bytes",
    1,
    "Bytes a follower's fetch waits for.",
    importance=Importance.HIGH,
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = integer(
    "replica.fetch.response.max.bytes",
    10_485_760,
    "Most bytes a follower asks for in one fetch.",
    rule=at_least(0),
)
REPLICA_SELECTOR_CLASS = string(
    "replica.selector.class",
    None,
    "Picks the replica a consumer reads from: Kafka's RackAwareReplicaSelector or LeaderSelector.",
)
READ_FROM_LEADER = "org.apache.kafka.common.replica.LeaderSelector"
READ_FROM_SAME_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NUM_REPLICA_FETCHERS = integer(
    "num.replica.fetchers",
    1,
    "Connections a follower opens to each leader.",
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = long(
    "replica.high.watermark.checkpoint.interval.ms",
    5000,
    "Time between two writes of each partition's high watermark.",
    importance=Importance.HIGH,
)
CONTROLLER_SOCKET_TIMEOUT_MS = integer(
    "controller.socket.timeout.ms",
    30_000,
    "How long the controller waits for a broker's answer.",
)
AUTO_LEADER_REBALANCE_ENABLE = boolean(
    "auto.leader.rebalance.enable",
    True,
    "Whether leadership is handed back to preferred replicas by itself.",
    importance=Importance.HIGH,
)
LEADER_IMBALANCE_PER_BROKER_PERCENTAGE = integer(
    "leader.imbalance.per.broker.percentage",
    10,
    "Share of a broker's partitions led elsewhere that sets off a rebalance.",
    importance=Importance.HIGH,
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = long(
    "leader.imbalance.check.interval.seconds",
    300,
    "Time between two looks at how leadership is spread.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
