"""Settings of a topic."""

from __future__ import annotations

from .declare import (
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
    words,
)
from .definitions import Importance, Served
from .keys.notes import NO_TIERS
from .rules import GZIP_LEVEL, KNOWN_VERSION, THROTTLED_REPLICAS

SEGMENT_BYTES = integer(
    "segment.bytes",
    1_073_741_824,
    "Size at which a segment is closed and a new one begun.",
    rule=at_least(14),
)
SEGMENT_MS = long(
    "segment.ms",
    604_800_000,
    "Age at which a segment is closed although it is not full.",
    rule=at_least(1),
)
SEGMENT_JITTER_MS = long(
    "segment.jitter.ms",
    0,
    "Largest random time taken off segment.ms.",
    rule=at_least(0),
)
SEGMENT_INDEX_BYTES = integer(
    "segment.index.bytes",
    10_485_760,
    "Largest index of a segment; a full index closes the segment.",
    rule=at_least(4),
)
FLUSH_MESSAGES = long(
    "flush.messages",
    LONG_MAX,
    "Records taken before they are forced to disk.",
    rule=at_least(1),
)
FLUSH_MS = long(
    "flush.ms",
    LONG_MAX,
    "Longest time a record waits before it is forced to disk.",
    rule=at_least(0),
)
RETENTION_BYTES = long(
    "retention.bytes",
    -1,
    "Size a partition may reach before its oldest segments go; -1 means no limit.",
)
RETENTION_MS = long(
    "retention.ms",
    604_800_000,
    "How long records are kept; -1 means for ever.",
    rule=at_least(-1),
)
MAX_MESSAGE_BYTES = integer(
    "max.message.bytes",
    1_048_588,
    "Largest record batch accepted, after compression.",
    rule=at_least(0),
)
INDEX_INTERVAL_BYTES = integer(
    "index.interval.bytes",
    4096,
    "Bytes of records between two entries of an offset index.",
    rule=at_least(0),
)
DELETE_RETENTION_MS = long(
    "delete.retention.ms",
    86_400_000,
    "How long the marks of deleted keys are kept in a compacted topic.",
    rule=at_least(0),
)
MIN_COMPACTION_LAG_MS = long(
    "min.compaction.lag.ms",
    0,
    "How long a record stays uncompacted at least.",
    rule=at_least(0),
)
MAX_COMPACTION_LAG_MS = long(
    "max.compaction.lag.ms",
    LONG_MAX,
    "How long a record stays uncompacted at most.",
    rule=at_least(1),
)
FILE_DELETE_DELAY_MS = long(
    "file.delete.delay.ms",
    60_000,
    "Time between the renaming of a file to .deleted and its removal.",
    rule=at_least(0),
)
MIN_CLEANABLE_DIRTY_RATIO = double(
    "min.cleanable.dirty.ratio",
    0.5,
    "Share of a log not yet compacted that makes it worth compacting.",
    rule=between(0, 1),
)
CLEANUP_POLICY = words(
    "cleanup.policy",
    ("delete",),
    "What becomes of old segments: delete, compact or both.",
    rule=all_of("compact", "delete"),
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    "Whether a replica that is behind may lead when no other is left, at the price of records.",
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas",
    1,
    "Replicas that must hold a record before a producer with acks=all is answered.",
    rule=at_least(1),
)
COMPRESSION_TYPE = string(
    "compression.type",
    "producer",
    "Codec of stored records; producer keeps that of each batch.",
    rule=one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
)
COMPRESSION_GZIP_LEVEL = integer(
    "compression.gzip.level",
    -1,
    "Effort of gzip when the broker compresses; -1 is gzip's own default.",
    rule=GZIP_LEVEL,
)
COMPRESSION_LZ4_LEVEL = integer(
    "compression.lz4.level",
    9,
    "Effort of lz4 when the broker compresses.",
    rule=between(1, 17),
)
COMPRESSION_ZSTD_LEVEL = integer(
    "compression.zstd.level",
    3,
    "Effort of zstd when the broker compresses.",
    rule=between(-131_072, 22),
)
PREALLOCATE = boolean(
    "preallocate",
    False,
    "Whether a segment's file gets its full size when it is created.",
)
MESSAGE_FORMAT_VERSION = string(
    "message.format.version",
    "3.0-IV1",
    "Record format that old clusters kept on disk.",
    rule=KNOWN_VERSION,
    served=Served.NEVER,
    note="Records are stored in format 2 whatever this says, as in Kafka 3.x.",
)
MESSAGE_TIMESTAMP_TYPE = string(
    "message.timestamp.type",
    "CreateTime",
    (
        "Whether a record carries the time its producer gave (CreateTime) or that of its arrival "
        "(LogAppendTime)."
    ),
    rule=one_of("CreateTime", "LogAppendTime"),
)
MESSAGE_TIMESTAMP_DIFFERENCE_MAX_MS = long(
    "message.timestamp.difference.max.ms",
    LONG_MAX,
    (
        "Largest difference between a record's time and the broker's; old name for the two limits "
        "before and after."
    ),
    rule=at_least(0),
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "message.timestamp.before.max.ms",
    LONG_MAX,
    "How far a record's time may lie before the broker's.",
    rule=at_least(0),
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "message.timestamp.after.max.ms",
    LONG_MAX,
    "How far a record's time may lie after the broker's.",
    rule=at_least(0),
)
LEADER_REPLICATION_THROTTLED_REPLICAS = words(
    "leader.replication.throttled.replicas",
    (),
    "Replicas whose leader sends at the throttled rate: partition:broker pairs or *.",
    rule=THROTTLED_REPLICAS,
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = words(
    "follower.replication.throttled.replicas",
    (),
    "Replicas that fetch at the throttled rate: partition:broker pairs or *.",
    rule=THROTTLED_REPLICAS,
)
MESSAGE_DOWNCONVERSION_ENABLE = boolean(
    "message.downconversion.enable",
    True,
    "Whether records are converted for clients that know only older formats.",
    importance=Importance.LOW,
)
REMOTE_STORAGE_ENABLE = boolean(
    "remote.storage.enable",
    False,
    "Whether old segments move to tiered storage.",
    served=Served.NEVER,
    note=NO_TIERS,
)
LOCAL_RETENTION_MS = long(
    "local.retention.ms",
    -2,
    "How long records stay on this disk once they are in tiered storage.",
    rule=at_least(-2),
    served=Served.NEVER,
    note=NO_TIERS,
)
LOCAL_RETENTION_BYTES = long(
    "local.retention.bytes",
    -2,
    "Bytes that stay on this disk once they are in tiered storage.",
    rule=at_least(-2),
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_COPY_DISABLE = boolean(
    "remote.log.copy.disable",
    False,
    "Whether copying to tiered storage is stopped.",
    served=Served.NEVER,
    note=NO_TIERS,
)
REMOTE_LOG_DELETE_ON_DISABLE = boolean(
    "remote.log.delete.on.disable",
    False,
    "Whether switching tiered storage off deletes what is there.",
    served=Served.NEVER,
    note=NO_TIERS,
)
