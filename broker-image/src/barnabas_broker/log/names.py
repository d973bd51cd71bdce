"""Names in a data directory: segment files, side files, partition directories.

Apache Kafka's LogFileUtils and LocalLog give the rules: a segment is named after its base offset
in twenty decimal digits; a partition directory is ``topic-partition``; a partition to be deleted
is ``topic-partition.<32 hex digits>-delete``, cut so that the name stays within 255 bytes.
"""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from barnabas_kafka.ids import TopicPartition

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"

SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
INDEX_SUFFIXES = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
CLEAN_SHUTDOWN_CONSUMED = ".kafka_cleanshutdown.consumed"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"

#: The tiered-storage cache of Apache Kafka is a directory of its own, never a partition.
NOT_PARTITIONS = frozenset({"remote-log-index-cache"})

_DELETE_DIRECTORY = re.compile(r"^(?P<tp>\S+)\.[0-9a-f]{32}-delete$")
_FUTURE_DIRECTORY = re.compile(r"^(?P<topic>\S+)-(?P<partition>\d+)\.[0-9a-f]{32}-future$")
_PARTITION_DIRECTORY = re.compile(r"^(?P<topic>\S+)-(?P<partition>\d+)$")
_MAX_NAME = 255


def segment_file(directory: Path, base_offset: int, suffix: str) -> Path:
    return directory / f"{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset a segment or snapshot file is named after; None for other names."""
    stem = name.partition(".")[0]
    return int(stem) if stem.isascii() and stem.isdigit() else None


def partition_directory(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


def delete_directory(tp: TopicPartition, unique: uuid.UUID) -> str:
    return _unique_directory(tp, unique, "delete")


def stray_directory(tp: TopicPartition, unique: uuid.UUID) -> str:
    """For what belongs to no topic of the cluster any more, and is left to the operator."""
    return _unique_directory(tp, unique, "stray")


def _unique_directory(tp: TopicPartition, unique: uuid.UUID, what: str) -> str:
    suffix = f"-{tp.partition}.{unique.hex}-{what}"
    return tp.topic[: _MAX_NAME - len(suffix)] + suffix


def is_marked_for_deletion(name: str) -> bool:
    return _DELETE_DIRECTORY.match(name) is not None


def future_directory(tp: TopicPartition, unique: uuid.UUID) -> str:
    """Of a replica on its way between two log directories; see `may_move`."""
    return f"{tp.topic}-{tp.partition}.{unique.hex}-future"


def may_move(tp: TopicPartition) -> bool:
    """False for a topic whose name leaves no room for the name of a future directory."""
    return len(future_directory(tp, uuid.UUID(int=0))) <= _MAX_NAME


def parse_future_directory(name: str) -> TopicPartition | None:
    """The partition of a replica on its way between two log directories; None for other names."""
    match = _FUTURE_DIRECTORY.match(name)
    return None if match is None else TopicPartition(match["topic"], int(match["partition"]))


def parse_partition_directory(name: str) -> TopicPartition | None:
    """The partition a directory holds; None when the name is not ``topic-partition``."""
    match = _PARTITION_DIRECTORY.match(name)
    if match is None or name in NOT_PARTITIONS:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))
