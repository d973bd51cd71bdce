"""The small text files of a data directory, as pure text in both directions.

Apache Kafka's CheckpointFile, LeaderEpochCheckpointFile, MetaProperties and
CleanShutdownFileHandler define them::

    offset checkpoints       0 \\n count \\n  then "topic partition offset" lines
    leader-epoch-checkpoint  0 \\n count \\n  then "epoch start-offset" lines
    meta.properties          version, broker.id, cluster.id as Java properties
    .kafka_cleanshutdown     {"version":0,"brokerEpoch":<int>}

Every ``parse_`` function raises :class:`MalformedCheckpointError` with what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from barnabas_broker.log.epochs import EpochEntry
from barnabas_kafka.ids import TopicPartition

_VERSION = 0


class MalformedCheckpointError(Exception):
    """A checkpoint file with a wrong version, count or line."""


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items()]
    return _format(lines)


def parse_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets = {}
    for line in _entries(data):
        try:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise MalformedCheckpointError(f"malformed line {line!r}") from None
    return offsets


def format_epochs(entries: Iterable[EpochEntry]) -> bytes:
    return _format([f"{entry.epoch} {entry.start_offset}" for entry in entries])


def parse_epochs(data: bytes) -> list[EpochEntry]:
    entries = []
    for line in _entries(data):
        try:
            epoch, start_offset = map(int, line.split())
        except ValueError:
            raise MalformedCheckpointError(f"malformed line {line!r}") from None
        if epoch < 0 or start_offset < 0:
            raise MalformedCheckpointError(f"negative number in line {line!r}")
        entries.append(EpochEntry(epoch, start_offset))
    return entries


def _format(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in [str(_VERSION), str(len(lines)), *lines]).encode()


def _entries(data: bytes) -> list[str]:
    try:
        version, count, *lines = data.decode("utf-8").splitlines()
        expected = int(count)
    except (ValueError, UnicodeDecodeError):
        raise MalformedCheckpointError("no version and count at its head") from None
    if version.strip() != str(_VERSION):
        raise MalformedCheckpointError(f"version {version!r} is unknown")
    entries = [line for line in lines if line.strip()]
    if len(entries) != expected:
        raise MalformedCheckpointError(f"{expected} entries promised, {len(entries)} found")
    return entries


def format_meta_properties(fields: Mapping[str, str]) -> bytes:
    """meta.properties with ``fields`` in order, as Java's Properties.store escapes them."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in fields.items()).encode()


def _escape(value: str) -> str:
    return "".join("\\" + char if char in "\\:=#!" else char for char in value)


def format_clean_shutdown(broker_epoch: int) -> bytes:
    text = json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    return text.encode()
