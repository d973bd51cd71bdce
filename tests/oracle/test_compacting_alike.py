"""Apache's log cleaner and ours are given the same logs, and leave the same."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas_broker.log.checkpoints import MalformedCheckpointError, parse_offsets
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.names import CLEANER_OFFSET_CHECKPOINT
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.producer_state import Origin
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records import batch as record_batches
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction,
    parse_control_key,
)
from tests.broker.log.cleaner.histories import COMPACT, PLENTY, clean, records_of
from tests.broker.log.samples import CLUSTER, validated
from tests.oracle.apache import ApacheKafka, ZooKeeper
from tests.oracle.coordination import register
from tests.waiting import wait_for

pytestmark = pytest.mark.jvm

#: Tombstones and markers that a first cleaning has met go with the next one, or stay for an hour.
HASTY: Final = replace(COMPACT, segment_bytes=3000, delete_retention_ms=1)
PATIENT: Final = replace(HASTY, delete_retention_ms=3_600_000)
CONFIGS: Final = {"hasty": HASTY, "patient": PATIENT}
PARTITIONS: Final = 6
WRITES: Final = 120
SETTINGS: Final = {
    "log.cleanup.policy": "compact",
    "log.cleaner.min.cleanable.ratio": "0.0",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.delete.retention.ms": "1",
    "log.segment.bytes": "3000",
    "log.index.interval.bytes": "100",
    "log.segment.delete.delay.ms": "0",
}
TRANSACTIONAL: Final = (21, 22, 23)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Author:
    """Writes a history picked by `seed` into a partition: every kind of producer and batch."""

    def __init__(self, seed: str, now: int) -> None:
        self.picks = random.Random(seed)
        self.now = now
        self.sequences = dict.fromkeys((11, 12, *TRANSACTIONAL), 0)
        self.open: set[int] = set()
        self.keys = range(60)

    def write(self, log: PartitionLog, count: int) -> None:
        """Append batches and markers; what is open of transactions stays open."""
        for _ in range(count):
            self.now += 1
            producer = self.picks.choice((-1, -1, *self.sequences))
            if producer in self.open and self.picks.random() < 0.4:
                self.end(log, producer, commit=self.picks.random() < 0.6)
            else:
                self._records(log, producer)
            log.advance_high_watermark(log.log_end_offset)

    def end_all(self, log: PartitionLog) -> None:
        """Decide every open transaction, and fill segments with what has other keys."""
        self.keys = range(40, 80)
        for producer in sorted(self.open):
            self.end(log, producer, commit=self.picks.random() < 0.5)
        for _ in range(30):
            self._records(log, -1)
        log.advance_high_watermark(log.log_end_offset)

    def end(self, log: PartitionLog, producer: int, *, commit: bool) -> None:
        self.open.discard(producer)
        marker = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, 0)
        data = build_end_transaction(
            marker, producer_id=producer, producer_epoch=0, timestamp_ms=self.now
        )
        log.append_as_leader(
            validated(data), leader_epoch=3, now_ms=self.now, origin=Origin.COORDINATOR
        )

    def _records(self, log: PartitionLog, producer: int) -> None:
        picks = self.picks
        records = []
        for number in range(picks.randint(1, 4)):
            key = b"key %d" % picks.choice(self.keys) if picks.random() > 0.02 else None
            value = None if picks.random() < 0.2 else b"value %d" % picks.randrange(10**9)
            headers = (("h", b"1"),) if picks.random() < 0.1 else ()
            records.append((self.now + number, key, value, headers))
        sequence = -1
        if producer >= 0:
            sequence = self.sequences[producer]
            self.sequences[producer] += len(records)
        if producer in TRANSACTIONAL:
            self.open.add(producer)
        data = build_batch(
            records,
            codec=picks.choice(list(Codec)),
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=sequence,
            transactional=producer in TRANSACTIONAL,
        )
        log.append_as_leader(validated(data), leader_epoch=3, now_ms=self.now)


@dataclass(frozen=True)
class Left:
    """What a partition consists of after a cleaning."""

    segments: list[int]
    batches: list[tuple[Any, ...]]
    aborted: list[Any]
    cleaned_to: int | None


def opened(directory: Path) -> LogDirectories:
    """The logs of a broker that was stopped cleanly."""
    logs = LogDirectories.take([directory])
    logs.claim(broker_id=0, cluster_id=CLUSTER)
    logs.load(lambda topic: CONFIGS[topic], now_ms=now_ms())
    for log in logs.logs.values():
        log.advance_high_watermark(log.log_end_offset)
    return logs


def contents(directory: Path) -> dict[str, Left]:
    """Everything a cleaning decides, by partition: of a delete horizon only that there is one."""
    logs = opened(directory)
    try:
        return {str(tp): left(log) for tp, log in logs.logs.items()}
    finally:
        logs.close()


def left(log: PartitionLog) -> Left:
    """All but the empty header that ours keeps at the end of what was cleaned, as newer brokers of
    Apache do and 3.9 does not.
    """
    batches: list[tuple[Any, ...]] = []
    for segment in log.segments:
        data = segment.file.read(0, segment.size)
        for position, header in record_batches.headers(data):
            record_batches.verify_crc(data, position, header)
            found: list[Any] = record_batches.records(data, position)
            if header.is_control:
                found = [(one.offset, parse_control_key(one.key)) for one in found]
            if not found and header.last_offset + 1 == log.cleaned_to:
                continue
            marked = header.delete_horizon_ms is not None
            batches.append(
                (
                    header.base_offset, header.last_offset, header.leader_epoch,
                    header.codec, header.producer_id, header.producer_epoch, header.base_sequence,
                    header.is_control, header.is_transactional, marked, header.max_timestamp,
                    found,
                )
            )  # fmt: skip
        segment.aborted.load()
    aborted = [one for segment in log.segments for one in segment.aborted.entries]
    return Left([one.base_offset for one in log.segments], batches, aborted, log.cleaned_to)


def clean_ours(directory: Path) -> None:
    """Clean what is due, with the clock of now."""
    logs = opened(directory)
    while clean(logs, now_ms=now_ms(), resources=PLENTY) is not None:
        pass
    logs.close()


def clean_apaches(directory: Path, work: Path, upto: dict[str, int]) -> None:
    """Let Apache's broker run on the logs until it has cleaned all of them `upto` these offsets."""
    shutil.copytree(directory, work / "kafka-logs")
    configs = {"patient": {"delete.retention.ms": "3600000"}}
    with ZooKeeper(directory=work / "zookeeper") as zookeeper:
        register(zookeeper, work / "kafka-logs", configs)
        apache = ApacheKafka(
            directory=work, zookeeper=zookeeper.connect, heap="512M", overrides=SETTINGS
        )
        with apache:
            checkpoint = apache.log_dirs[0] / CLEANER_OFFSET_CHECKPOINT
            wait_for(
                f"Apache's cleaner offsets {upto}",
                lambda: cleaned(checkpoint),
                until=lambda offsets: offsets == upto,
            )
    shutil.rmtree(directory)
    shutil.copytree(work / "kafka-logs", directory)


def tombstones(directory: Path, topic: str, upto: dict[str, int]) -> int:
    """How many are left of a topic below these offsets."""
    logs = opened(directory)
    try:
        return sum(
            one.value is None and one.offset < upto[str(tp)]
            for tp, log in logs.logs.items()
            if tp.topic == topic
            for one in records_of(log)
        )
    finally:
        logs.close()


def cleaned(checkpoint: Path) -> dict[str, int]:
    """How far the cleaner has come, by partition; the file is there before its content."""
    try:
        return {str(tp): offset for tp, offset in parse_offsets(checkpoint.read_bytes()).items()}
    except (FileNotFoundError, MalformedCheckpointError):
        return {}


@pytest.fixture
def authors() -> dict[TopicPartition, Author]:
    """One for each partition, a few minutes ago."""
    now = now_ms() - 300_000
    return {
        TopicPartition(topic, number): Author(f"{topic} {number}", now)
        for topic in CONFIGS
        for number in range(PARTITIONS)
    }


def write_all(
    directory: Path,
    authors: dict[TopicPartition, Author],
    how: Callable[[Author, PartitionLog], None],
) -> None:
    logs = opened(directory)
    for tp, author in authors.items():
        topic_id = UUID(int=7 + len(tp.topic))
        how(author, logs.logs.get(tp) or logs.create(tp, CONFIGS[tp.topic], topic_id, now_ms()))
    logs.checkpoint()
    logs.close()


def test_the_same_is_left(tmp_path: Path, authors: dict[TopicPartition, Author]) -> None:
    """Segments, batches, records, markers, empty batches, the index of aborted transactions, and
    how far it went are equal: after a first cleaning, which an open transaction bounds, and
    after a second, when each goes on where the other had stopped.
    """
    one, other = tmp_path / "one", tmp_path / "other"
    write_all(one, authors, lambda author, log: author.write(log, WRITES))
    shutil.copytree(one, other)
    before = contents(one)

    clean_ours(one)
    ours = contents(one)
    upto = cleaned(one / CLEANER_OFFSET_CHECKPOINT)
    clean_apaches(other, tmp_path / "first", upto)
    assert contents(other) == ours
    assert all(len(ours[tp].batches) < len(before[tp].batches) for tp in ours)

    assert tombstones(one, "hasty", upto) > 20, "the first cleaning that meets them leaves them"

    for directory in (one, other):
        write_all(directory, deepcopy(authors), Author.end_all)
    clean_ours(other)
    ours = contents(other)
    clean_apaches(one, tmp_path / "second", cleaned(other / CLEANER_OFFSET_CHECKPOINT))
    assert contents(one) == ours
    assert tombstones(one, "hasty", upto) == 0, "their time is over"
    assert tombstones(one, "patient", upto) > 0, "theirs is not"
