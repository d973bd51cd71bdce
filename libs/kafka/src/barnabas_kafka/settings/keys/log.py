"""Where records are kept, for how long, and when they reach the disk."""

from __future__ import annotations

from ..declare import (
    DOUBLE_MAX,
    ELSEWHERE,
    LONG_MAX,
    all_of,
    at_least,
    between,
    boolean,
    double,
    integer,
    long,
    one_of,
    string,
    texts,
    words,
)
from ..definitions import Importance, Served, UpdateMode
from ..rules import GZIP_LEVEL, KNOWN_VERSION

LOG_DIR = string(
    "log.dir",
    "/tmp/kafka-logs",  # noqa: S108  (Kafka's default; the command line has a better one)
    "Directory for records, if log.dirs does not say more.",
    importance=Importance.HIGH,
)
LOG_DIRS = texts(
    "log.dirs",
    ELSEWHERE,
    "Directories for records, separated by commas; a new partition goes where the fewest are.",
    importance=Importance.HIGH,
)
LOG_SEGMENT_BYTES = integer(
    "log.segment.bytes",
    1_073_741_824,
    "Size at which a segment is closed and a new one begun.",
    rule=at_least(14),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_ROLL_MS = long(
    "log.roll.ms",
    ELSEWHERE,
    "Age at which a segment is closed although it is not full; goes before log.roll.hours.",
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_ROLL_HOURS = integer(
    "log.roll.hours",
    168,
    "Age in hours at which a segment is closed although it is not full.",
    rule=at_least(1),
    importance=Importance.HIGH,
)
LOG_ROLL_JITTER_MS = long(
    "log.roll.jitter.ms",
    ELSEWHERE,
    (
        "Largest random time taken off the age at which segments close, so that not all close at "
        "once; goes before log.roll.jitter.hours."
    ),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_ROLL_JITTER_HOURS = integer(
    "log.roll.jitter.hours",
    0,
    "The same in hours.",
    rule=at_least(0),
    importance=Importance.HIGH,
)
LOG_RETENTION_MS = long(
    "log.retention.ms",
    ELSEWHERE,
    (
        "How long records are kept; -1 means for ever. Goes before log.retention.minutes and "
        "log.retention.hours."
    ),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_RETENTION_MINUTES = integer(
    "log.retention.minutes",
    None,
    "How long records are kept, in minutes. Goes before log.retention.hours.",
    importance=Importance.HIGH,
)
LOG_RETENTION_HOURS = integer(
    "log.retention.hours",
    168,
    "How long records are kept, in hours; -1 means for ever.",
    importance=Importance.HIGH,
)
LOG_RETENTION_BYTES = long(
    "log.retention.bytes",
    -1,
    "Size a partition may reach before its oldest segments go; -1 means no limit.",
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_RETENTION_CHECK_INTERVAL_MS = long(
    "log.retention.check.interval.ms",
    300_000,
    "Time between two searches for segments that have outlived their time or size.",
    rule=at_least(1),
)
LOG_CLEANUP_POLICY = words(
    "log.cleanup.policy",
    ("delete",),
    "What becomes of old segments: delete, compact or both.",
    rule=all_of("compact", "delete"),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_INDEX_SIZE_MAX_BYTES = integer(
    "log.index.size.max.bytes",
    10_485_760,
    "Largest index of a segment; a full index closes the segment.",
    rule=at_least(4),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_INDEX_INTERVAL_BYTES = integer(
    "log.index.interval.bytes",
    4096,
    "Bytes of records between two entries of an offset index.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MESSAGES = long(
    "log.flush.interval.messages",
    LONG_MAX,
    "Records a partition takes before it is forced to disk.",
    rule=at_least(1),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MS = long(
    "log.flush.interval.ms",
    ELSEWHERE,
    (
        "Longest time a record waits before it is forced to disk; that of "
        "log.flush.scheduler.interval.ms where it is not given."
    ),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = long(
    "log.flush.scheduler.interval.ms",
    LONG_MAX,
    "Time between two looks for partitions to force to disk.",
    importance=Importance.HIGH,
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = integer(
    "log.flush.offset.checkpoint.interval.ms",
    60_000,
    "Time between two writes of how far each partition is known to be on disk.",
    rule=at_least(0),
    importance=Importance.HIGH,
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = integer(
    "log.flush.start.offset.checkpoint.interval.ms",
    60_000,
    "Time between two writes of where each partition begins.",
    rule=at_least(0),
    importance=Importance.HIGH,
    served=Served.OTHERWISE,
    note="Written every log.flush.offset.checkpoint.interval.ms, with the other checkpoints.",
)
LOG_SEGMENT_DELETE_DELAY_MS = long(
    "log.segment.delete.delay.ms",
    60_000,
    "Time between the renaming of a file to .deleted and its removal.",
    rule=at_least(0),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_PREALLOCATE = boolean(
    "log.preallocate",
    False,
    "Whether a segment's file gets its full size when it is created.",
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_DIR_FAILURE_TIMEOUT_MS = long(
    "log.dir.failure.timeout.ms",
    30_000,
    "Time a broker with a failed directory waits for the controller before it stops.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.LATER,
)
LOG_INITIAL_TASK_DELAY_MS = long(
    "log.initial.task.delay.ms",
    30_000,
    "Time from start to the first run of housekeeping.",
    rule=at_least(0),
    importance=Importance.LOW,
    served=Served.LATER,
    internal=True,
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = integer(
    "num.recovery.threads.per.data.dir",
    1,
    "Threads per directory that check logs at start and flush them at stop.",
    rule=at_least(1),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
NUM_REPLICA_ALTER_LOG_DIRS_THREADS = integer(
    "num.replica.alter.log.dirs.threads",
    ELSEWHERE,
    (
        "Threads that move partitions between directories; as many as directories where it is not "
        "given."
    ),
    importance=Importance.HIGH,
)
LOG_MESSAGE_FORMAT_VERSION = string(
    "log.message.format.version",
    "3.0-IV1",
    "Record format that old clusters kept on disk.",
    rule=KNOWN_VERSION,
    served=Served.NEVER,
    note="Records are stored in format 2 whatever this says, as in Kafka 3.x.",
)
LOG_MESSAGE_TIMESTAMP_TYPE = string(
    "log.message.timestamp.type",
    "CreateTime",
    (
        "Whether a record carries the time its producer gave (CreateTime) or that of its arrival "
        "(LogAppendTime)."
    ),
    rule=one_of("CreateTime", "LogAppendTime"),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_DIFFERENCE_MAX_MS = long(
    "log.message.timestamp.difference.max.ms",
    LONG_MAX,
    (
        "Largest difference between a record's time and the broker's; old name for the two limits "
        "before and after."
    ),
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "log.message.timestamp.before.max.ms",
    LONG_MAX,
    "How far a record's time may lie before the broker's.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "log.message.timestamp.after.max.ms",
    LONG_MAX,
    "How far a record's time may lie after the broker's.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_MESSAGE_DOWNCONVERSION_ENABLE = boolean(
    "log.message.downconversion.enable",
    True,
    "Whether records are converted for clients that know only older formats.",
    importance=Importance.LOW,
    update=UpdateMode.CLUSTER_WIDE,
)
COMPRESSION_TYPE = string(
    "compression.type",
    "producer",
    "Codec of stored records; producer keeps that of each batch.",
    rule=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    importance=Importance.HIGH,
    update=UpdateMode.CLUSTER_WIDE,
)
COMPRESSION_GZIP_LEVEL = integer(
    "compression.gzip.level",
    -1,
    "Effort of gzip when the broker compresses; -1 is gzip's own default.",
    rule=GZIP_LEVEL,
    update=UpdateMode.CLUSTER_WIDE,
)
COMPRESSION_LZ4_LEVEL = integer(
    "compression.lz4.level",
    9,
    "Effort of lz4 when the broker compresses.",
    rule=between(1, 17),
    update=UpdateMode.CLUSTER_WIDE,
)
COMPRESSION_ZSTD_LEVEL = integer(
    "compression.zstd.level",
    3,
    "Effort of zstd when the broker compresses.",
    rule=between(-131_072, 22),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_ENABLE = boolean(
    "log.cleaner.enable",
    True,
    "Whether compacted topics are compacted.",
)
LOG_CLEANER_THREADS = integer(
    "log.cleaner.threads",
    1,
    "Logs compacted at the same time.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = double(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE_MAX,
    "Bytes that compaction reads and writes per second in all.",
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = long(
    "log.cleaner.dedupe.buffer.size",
    134_217_728,
    "Memory for the keys seen during compaction, in all.",
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_IO_BUFFER_SIZE = integer(
    "log.cleaner.io.buffer.size",
    524_288,
    "Memory for reading and writing during compaction, in all.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR = double(
    "log.cleaner.io.buffer.load.factor",
    0.9,
    "How full the key memory may get before a pass of compaction ends.",
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_BACKOFF_MS = long(
    "log.cleaner.backoff.ms",
    15_000,
    "Pause of compaction when no log needs it.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = double(
    "log.cleaner.min.cleanable.ratio",
    0.5,
    "Share of a log not yet compacted that makes it worth compacting.",
    rule=between(0, 1),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_DELETE_RETENTION_MS = long(
    "log.cleaner.delete.retention.ms",
    86_400_000,
    "How long the marks of deleted keys are kept in a compacted topic.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = long(
    "log.cleaner.min.compaction.lag.ms",
    0,
    "How long a record stays uncompacted at least.",
    rule=at_least(0),
    update=UpdateMode.CLUSTER_WIDE,
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = long(
    "log.cleaner.max.compaction.lag.ms",
    LONG_MAX,
    "How long a record stays uncompacted at most.",
    rule=at_least(1),
    update=UpdateMode.CLUSTER_WIDE,
)
