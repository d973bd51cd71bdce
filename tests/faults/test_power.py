"""The power fails under load, again and again, on real file systems.

With `barnabas.durability=fsync` nothing that was acknowledged is lost. With the default only what
had been flushed is promised. In either case the broker opens what it finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas_broker.log.checkpoints import parse_offsets
from barnabas_broker.log.names import RECOVERY_POINT_CHECKPOINT
from tests.clients.brokers import Barnabas
from tests.faults.load import Load, Place, in_order, stored
from tests.faults.volume import Volume
from tests.waiting import ANSWER, seconds

TOPIC: Final = "powerless"
RECORDS_BETWEEN: Final = 1500
SETTINGS: Final = {
    "broker.id": "0",
    "num.partitions": "2",
    "offsets.topic.num.partitions": "1",
    "log.segment.bytes": "100000",
    "log.index.interval.bytes": "300",
}
FAILURES: Final = [
    pytest.param(2, id="2"),
    pytest.param(30, id="30", marks=pytest.mark.soak),
]


def broker_on(volume: Volume, directory: Path, **settings: str) -> Barnabas:
    """A broker whose records are on the volume; its own log is not."""
    own = {name.replace("_", "."): value for name, value in settings.items()}
    return Barnabas(directory, {**SETTINGS, "log.dirs": str(volume.path / "logs"), **own})


def fail(volume: Volume, broker: Barnabas) -> None:
    """Lose power under the broker, and start it again."""
    volume.lose_power(broker.pid)
    broker.kill()
    volume.reboot()
    broker.start()


def commit(bootstrap: str, offset: int) -> int:
    """Commit an offset and return the one that was committed before, -1001 for none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    try:
        (before,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=seconds(ANSWER))
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
        return int(before.offset)
    finally:
        consumer.close()


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("failures", FAILURES)
def test_nothing_acknowledged_is_lost(tmp_path: Path, kind: str, failures: int) -> None:
    """Records are there once, where they were acknowledged, in order; offsets do not go back."""
    with (
        Volume(tmp_path, kind) as volume,
        broker_on(volume, tmp_path / "broker", barnabas_durability="fsync") as broker,
    ):
        load = Load(broker.bootstrap, TOPIC, **{"enable.idempotence": True})
        for number in range(1, failures + 1):
            load.send_until(number * RECORDS_BETWEEN)
            before = commit(broker.bootstrap, number)
            assert before == (number - 1 or -1001)
            fail(volume, broker)
        load.finish()
        keys = stored(broker.bootstrap, TOPIC)
        assert keys == {place: key for key, place in load.acknowledged.items()}
        assert in_order(keys)
        broker.stop()


def flushed(volume: Volume) -> dict[int, int]:
    """By partition, the offset below which the broker noted everything as flushed."""
    checkpoint = volume.path / "logs" / RECOVERY_POINT_CHECKPOINT
    points = parse_offsets(checkpoint.read_bytes()) if checkpoint.exists() else {}
    return {tp.partition: offset for tp, offset in points.items() if tp.topic == TOPIC}


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("failures", FAILURES)
def test_nothing_flushed_is_lost(tmp_path: Path, kind: str, failures: int) -> None:
    """What log.flush.interval.messages had flushed is as it was; the rest is lost from its end."""
    with (
        Volume(tmp_path, kind) as volume,
        broker_on(
            volume,
            tmp_path / "broker",
            log_flush_interval_messages="300",
            log_flush_offset_checkpoint_interval_ms="50",
        ) as broker,
    ):
        known: dict[Place, bytes] = {}
        begin = 0
        for _ in range(failures):
            load = Load(broker.bootstrap, TOPIC, begin=begin, acks="all")
            before, points = flushed(volume), flushed(volume)
            while sum(points.values()) <= sum(before.values()):
                load.send_until(len(load.acknowledged) + RECORDS_BETWEEN)
                points = flushed(volume)
            fail(volume, broker)
            load.abandon()
            begin += load.sent
            acknowledged = {place: key for key, place in load.acknowledged.items()}
            kept = stored(broker.bootstrap, TOPIC)
            promised = {
                place: key
                for place, key in (known | acknowledged).items()
                if place[1] < points.get(place[0], 0)
            }
            assert {place: kept.get(place) for place in promised} == promised
            known = kept
        broker.stop()
