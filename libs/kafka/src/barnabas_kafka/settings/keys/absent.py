"""What belongs to KRaft and to tiered storage: known by name so that giving it is noticed."""

from __future__ import annotations

from ..declare import (
    LONG_MAX,
    all_of,
    at_least,
    between,
    boolean,
    double,
    integer,
    long,
    not_empty,
    string,
    words,
)
from ..definitions import Importance, Served, UpdateMode
from ..rules import POOL_SIZE
from .notes import NO_TIERS, ZOOKEEPER_ONLY

PROCESS_ROLES = words(
    "process.roles",
    (),
    "Roles of a KRaft node.",
    rule=all_of("broker", "controller"),
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_LISTENER_NAMES = string(
    "controller.listener.names",
    None,
    "Listeners of KRaft controllers.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_VOTERS = words(
    "controller.quorum.voters",
    (),
    "Voters of a KRaft quorum.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_BOOTSTRAP_SERVERS = words(
    "controller.quorum.bootstrap.servers",
    (),
    "Where a KRaft quorum is found.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS = integer(
    "controller.quorum.election.timeout.ms",
    1000,
    "How long a KRaft node waits for a leader before it stands for election.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_FETCH_TIMEOUT_MS = integer(
    "controller.quorum.fetch.timeout.ms",
    2000,
    "How long a KRaft leader may be silent.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS = integer(
    "controller.quorum.election.backoff.max.ms",
    1000,
    "Longest pause after a failed KRaft election.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_APPEND_LINGER_MS = integer(
    "controller.quorum.append.linger.ms",
    25,
    "How long a KRaft leader gathers writes.",
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS = integer(
    "controller.quorum.request.timeout.ms",
    2000,
    "How long a KRaft request may take.",
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
CONTROLLER_QUORUM_RETRY_BACKOFF_MS = integer(
    "controller.quorum.retry.backoff.ms",
    20,
    "Pause after a failed KRaft request.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = integer(
    "initial.broker.registration.timeout.ms",
    60_000,
    "How long a KRaft broker tries to register.",
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
BROKER_HEARTBEAT_INTERVAL_MS = integer(
    "broker.heartbeat.interval.ms",
    2000,
    "Heartbeat of a KRaft broker.",
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
BROKER_SESSION_TIMEOUT_MS = integer(
    "broker.session.timeout.ms",
    9000,
    "Session of a KRaft broker.",
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
SERVER_MAX_STARTUP_TIME_MS = long(
    "server.max.startup.time.ms",
    LONG_MAX,
    "How long a KRaft node may take to start.",
    rule=at_least(0),
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
    internal=True,
)
ELIGIBLE_LEADER_REPLICAS_ENABLE = boolean(
    "eligible.leader.replicas.enable",
    False,
    "Whether eligible leader replicas are recorded.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_LOG_DIR = string(
    "metadata.log.dir",
    None,
    "Directory of the KRaft log.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_LOG_SEGMENT_BYTES = integer(
    "metadata.log.segment.bytes",
    1_073_741_824,
    "Segment size of the KRaft log.",
    rule=at_least(12),
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_LOG_SEGMENT_MIN_BYTES = integer(
    "metadata.log.segment.min.bytes",
    8_388_608,
    "Least segment size of the KRaft log.",
    rule=at_least(12),
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
    internal=True,
)
METADATA_LOG_SEGMENT_MS = long(
    "metadata.log.segment.ms",
    604_800_000,
    "Age at which a segment of the KRaft log closes.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS = long(
    "metadata.log.max.record.bytes.between.snapshots",
    20_971_520,
    "Bytes of the KRaft log between snapshots.",
    rule=at_least(1),
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS = long(
    "metadata.log.max.snapshot.interval.ms",
    3_600_000,
    "Longest time between snapshots of the KRaft log.",
    rule=at_least(0),
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_MAX_RETENTION_BYTES = long(
    "metadata.max.retention.bytes",
    104_857_600,
    "Size of the KRaft log and its snapshots.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_MAX_RETENTION_MS = long(
    "metadata.max.retention.ms",
    604_800_000,
    "How long the KRaft log is kept.",
    importance=Importance.HIGH,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
METADATA_MAX_IDLE_INTERVAL_MS = integer(
    "metadata.max.idle.interval.ms",
    500,
    "Longest time between entries of the KRaft log.",
    rule=at_least(0),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=ZOOKEEPER_ONLY,
)
REMOTE_LOG_STORAGE_SYSTEM_ENABLE = boolean(
    "remote.log.storage.system.enable",
    False,
    "Whether old segments move to tiered storage.",
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX = string(
    "remote.log.storage.manager.impl.prefix",
    "rsm.config.",
    "Prefix of the settings of a storage plugin.",
    rule=not_empty(),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_METADATA_MANAGER_IMPL_PREFIX = string(
    "remote.log.metadata.manager.impl.prefix",
    "rlmm.config.",
    "Prefix of the settings of a metadata plugin.",
    rule=not_empty(),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_NAME = string(
    "remote.log.storage.manager.class.name",
    None,
    "Java class of the storage plugin.",
    rule=not_empty(),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_PATH = string(
    "remote.log.storage.manager.class.path",
    None,
    "Where that class is found.",
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_METADATA_MANAGER_CLASS_NAME = string(
    "remote.log.metadata.manager.class.name",
    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    "Java class of the metadata plugin.",
    rule=not_empty(),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_METADATA_MANAGER_CLASS_PATH = string(
    "remote.log.metadata.manager.class.path",
    None,
    "Where that class is found.",
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME = string(
    "remote.log.metadata.manager.listener.name",
    None,
    "Listener that the metadata plugin uses.",
    rule=not_empty(),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_METADATA_CUSTOM_METADATA_MAX_BYTES = integer(
    "remote.log.metadata.custom.metadata.max.bytes",
    128,
    "Bytes a storage plugin may add to its metadata.",
    rule=at_least(0),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_INDEX_FILE_CACHE_TOTAL_SIZE_BYTES = long(
    "remote.log.index.file.cache.total.size.bytes",
    1_073_741_824,
    "Disk for indexes fetched from tiered storage.",
    rule=at_least(1),
    importance=Importance.LOW,
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.thread.pool.size",
    10,
    "Threads for tiered storage.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.copier.thread.pool.size",
    -1,
    "Threads that copy to tiered storage.",
    rule=POOL_SIZE,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE = integer(
    "remote.log.manager.expiration.thread.pool.size",
    -1,
    "Threads that delete from tiered storage.",
    rule=POOL_SIZE,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_TASK_INTERVAL_MS = long(
    "remote.log.manager.task.interval.ms",
    30_000,
    "Time between two runs of tiered storage's tasks.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MS = long(
    "remote.log.manager.task.retry.backoff.ms",
    500,
    "First pause after a failed task.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_TIERS,
    internal=True,
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MAX_MS = long(
    "remote.log.manager.task.retry.backoff.max.ms",
    30_000,
    "Longest pause after failed tasks.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_TIERS,
    internal=True,
)
REMOTE_LOG_MANAGER_TASK_RETRY_JITTER = double(
    "remote.log.manager.task.retry.jitter",
    0.2,
    "Random share of that pause.",
    rule=between(0, 0.5),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_TIERS,
    internal=True,
)
REMOTE_LOG_READER_THREADS = integer(
    "remote.log.reader.threads",
    10,
    "Threads that read from tiered storage.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_READER_MAX_PENDING_TASKS = integer(
    "remote.log.reader.max.pending.tasks",
    100,
    "Reads from tiered storage that may wait.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_COPY_MAX_BYTES_PER_SECOND = long(
    "remote.log.manager.copy.max.bytes.per.second",
    LONG_MAX,
    "Bytes copied to tiered storage per second.",
    rule=at_least(1),
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_NUM = integer(
    "remote.log.manager.copy.quota.window.num",
    11,
    "Windows over which that rate is measured.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "remote.log.manager.copy.quota.window.size.seconds",
    1,
    "Length of each of these windows.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_FETCH_MAX_BYTES_PER_SECOND = long(
    "remote.log.manager.fetch.max.bytes.per.second",
    LONG_MAX,
    "Bytes read from tiered storage per second.",
    rule=at_least(1),
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_NUM = integer(
    "remote.log.manager.fetch.quota.window.num",
    11,
    "Windows over which that rate is measured.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "remote.log.manager.fetch.quota.window.size.seconds",
    1,
    "Length of each of these windows.",
    rule=at_least(1),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_FETCH_MAX_WAIT_MS = integer(
    "remote.fetch.max.wait.ms",
    500,
    "Longest a fetch waits for tiered storage.",
    rule=at_least(1),
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_TIERS,
)
LOG_LOCAL_RETENTION_MS = long(
    "log.local.retention.ms",
    -2,
    "How long records stay on this disk once they are in tiered storage.",
    rule=at_least(-2),
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_TIERS,
)
LOG_LOCAL_RETENTION_BYTES = long(
    "log.local.retention.bytes",
    -2,
    "Bytes that stay on this disk once they are in tiered storage.",
    rule=at_least(-2),
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_TIERS,
)
