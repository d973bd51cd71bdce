"""The small files of a data directory: each reader gets the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from barnabas_broker.log import (
    checkpoints,
    meta_properties,
    partition_metadata,
    producer_snapshot,
    transaction_index,
)
from barnabas_broker.log.cleaner import job
from barnabas_broker.log.epochs import EpochEntry, LeaderEpochs
from barnabas_broker.log.indexes import CorruptIndexError
from barnabas_broker.log.names import offset_of, parse_partition_directory
from barnabas_broker.log.producer_state import BatchMetadata, ProducerEntry
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.crc import crc32c
from fuzz.oracle import promise

_NOWHERE: Final = Path("nowhere")
_Bytes = Callable[[Any], bytes]


def check(data: bytes) -> None:
    """Each reader gives a value or the error that start-up knows how to answer."""
    _round(checkpoints.parse_offsets, checkpoints.format_offsets, data)
    _round(partition_metadata.parse, partition_metadata.encode, data)
    epochs = _round(checkpoints.parse_epochs, checkpoints.format_epochs, data)
    if epochs is not None:
        kept = LeaderEpochs(epochs).entries
        promise(LeaderEpochs(kept).entries == kept, "epochs change when they are read again")
    _snapshot(data)
    try:
        transaction_index.parse(data, _NOWHERE)
    except CorruptIndexError:
        pass
    _owner(data)
    name = data.decode("utf-8", "surrogateescape")
    parse_partition_directory(name)
    offset_of(name)
    try:
        job.decode(data)
    except ValueError:
        pass


def _round(parse: Callable[[bytes], Any], write: _Bytes, data: bytes) -> Any:
    try:
        value = parse(data)
    except checkpoints.MalformedCheckpointError:
        return None
    promise(parse(write(value)) == value, "a checkpoint changes", value)
    return value


def _snapshot(data: bytes) -> None:
    for content in (data, data[:2] + crc32c(data[6:]).to_bytes(4, "big") + data[6:]):
        try:
            entries = producer_snapshot.decode(content)
        except producer_snapshot.CorruptSnapshotError:
            continue
        written = producer_snapshot.encode(entries)
        promise(producer_snapshot.decode(written) == entries, "a snapshot changes", entries)


def _owner(data: bytes) -> None:
    meta_properties.stored_broker_id(data)
    meta_properties.stored_cluster_id(data)
    try:
        changed = meta_properties.check(data, broker_id=1, cluster_id="c")
    except meta_properties.WrongOwnerError:
        return
    written = data if changed is None else changed
    again = meta_properties.check(written, broker_id=1, cluster_id="c")
    promise(again is None, "meta.properties is never right", written)


def seeds() -> Iterator[bytes]:
    """One of each file."""
    yield checkpoints.format_offsets({TopicPartition("t", 0): 5, TopicPartition("u-1", 2): 0})
    yield checkpoints.format_epochs([EpochEntry(0, 0), EpochEntry(3, 17)])
    yield partition_metadata.encode(UUID(int=99))
    yield checkpoints.format_clean_shutdown(7)
    entry = ProducerEntry(producer_id=1, epoch=0, batches=(BatchMetadata(1, 1, 1, 1000),))
    yield producer_snapshot.encode([entry])
    yield transaction_index.ENTRY.pack(0, 1, 0, 5, 6)
    yield b"version=0\nbroker.id=1\ncluster.id=c\nnode.id=1\n"
    yield b"topic-12"
    yield b"00000000000000000012.log"
    yield job.encode(job.Failed(trouble=job.Trouble.IO, reason="why", errno=5))
