"""A real broker on a disk that fills up: it refuses, serves on, and recovers by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas_kafka.errors import ErrorCode
from tests.broker.server.running import Wire
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import read_all
from tests.clients.troubles import until_logged
from tests.clients.wire import some_batch
from tests.faults.disk import FaultyDisk
from tests.faults.volumes import small_volume
from tests.waiting import ANSWER, seconds, wait_for

MEGABYTE: Final = 1 << 20
#: 16 MiB of disk, and of them what is given here is left to deletion and to offsets.
RESERVES: Final = ("0", str(2 * MEGABYTE))


def settings(volume: Path, reserve: str) -> dict[str, str]:
    return {
        "broker.id": "0",
        "log.dirs": str(volume / "logs"),
        "log.segment.bytes": str(MEGABYTE),
        "log.index.size.max.bytes": "4096",
        "offsets.topic.num.partitions": "1",
        "barnabas.log.dirs.min.free.bytes": reserve,
        "barnabas.log.dirs.resume.bytes": str(4 * MEGABYTE),
    }


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    with small_volume(tmp_path / "volume", megabytes=16) as mounted:
        yield mounted


class Writer:
    """One connection that produces records that are all different, and keeps those acknowledged."""

    def __init__(self, broker: Barnabas, topic: str, *, size: int = 60_000) -> None:
        self.topic = topic
        self.acknowledged: list[bytes] = []
        self._broker = broker
        self._size = size
        self._sent = 0

    def write(self, wire: Wire) -> int:
        """Produce one record; returns the error code."""
        value = (b"%d " % self._sent).ljust(self._size, b".")
        self._sent += 1
        answer = wire.produce(self.topic, some_batch(value))
        if answer.error_code == 0:
            assert answer.base_offset == len(self.acknowledged)
            self.acknowledged.append(value)
        return answer.error_code

    def write_until(self, code: ErrorCode) -> None:
        """Produce until the answer is that code."""
        with wire_to(self._broker) as wire:

            def write_on() -> int:
                """What takes records is written to without pauses."""
                while (found := self.write(wire)) == ErrorCode.NONE != code:
                    pass
                return found

            wait_for("the error code of a produce", write_on, until=lambda found: found == code)

    def assert_all_is_there(self) -> None:
        """What was acknowledged is read, in order, and nothing else is."""
        found = read_all(self._broker.bootstrap, self.topic)
        assert [record.value() for record in found] == self.acknowledged


def wire_to(broker: Barnabas) -> Wire:
    return Wire(int(broker.bootstrap.rpartition(":")[2]))


def fill(broker: Barnabas, topic: str) -> Writer:
    """A topic that has filled the disk."""
    with wire_to(broker) as wire:
        wire.create_topic(topic)
    writer = Writer(broker, topic)
    writer.write_until(ErrorCode.KAFKA_STORAGE_ERROR)
    assert writer.acknowledged
    return writer


@pytest.mark.parametrize("reserve", RESERVES)
def test_producing_stops_reading_goes_on_and_room_heals(volume: Path, reserve: str) -> None:
    """Records are refused when the disk is full, and taken when something else makes room."""
    ballast = volume / "ballast"
    ballast.write_bytes(bytes(6 * MEGABYTE))
    with Barnabas(volume.parent / "broker", settings(volume, reserve)) as broker:
        writer = fill(broker, "filling")
        writer.assert_all_is_there()
        said = broker.log_file.read_text()
        assert said.count("Log directory full: ") == 1
        ballast.unlink()
        writer.write_until(ErrorCode.NONE)
        writer.assert_all_is_there()
        until_logged(broker, "Log directory writable again")


@pytest.mark.parametrize("reserve", RESERVES)
def test_a_restart_on_the_full_disk_serves_what_there_is(volume: Path, reserve: str) -> None:
    """Killed and started without any room, the broker comes up and lets everything be read."""
    with Barnabas(volume.parent / "broker", settings(volume, reserve)) as broker:
        writer = fill(broker, "filling")
        broker.kill()
        broker.start()
        writer.assert_all_is_there()
        # What it left of its files may be some room, and it looks for the reserve once a second.
        writer.write_until(ErrorCode.KAFKA_STORAGE_ERROR)
        broker.stop()
        broker.start()
        writer.assert_all_is_there()


def test_deleting_a_topic_makes_room_at_once(volume: Path) -> None:
    """The delay before files go is not kept where room is missing."""
    with Barnabas(volume.parent / "broker", settings(volume, RESERVES[1])) as broker:
        with wire_to(broker) as wire:
            wire.create_topic("kept")
        fill(broker, "filling")
        kept = Writer(broker, "kept")
        with wire_to(broker) as wire:
            assert kept.write(wire) == ErrorCode.KAFKA_STORAGE_ERROR
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.delete_topics(["filling"])["filling"].result(seconds(ANSWER))
        kept.write_until(ErrorCode.NONE)
        kept.assert_all_is_there()


def test_retention_makes_room_by_itself(volume: Path) -> None:
    """What retention may delete goes when the disk is full, not at its next turn."""
    with Barnabas(volume.parent / "broker", settings(volume, RESERVES[1])) as broker:
        with wire_to(broker) as wire:
            wire.create_topic("kept")
            wire.create_topic("passing", retention_bytes=str(2 * MEGABYTE))
        Writer(broker, "passing").write_until(ErrorCode.KAFKA_STORAGE_ERROR)
        kept = Writer(broker, "kept")
        kept.write_until(ErrorCode.NONE)
        kept.assert_all_is_there()


def test_offsets_are_committed_out_of_the_reserve(volume: Path) -> None:
    """Consumers go on, and their groups are not lost, while producers have to wait."""
    with Barnabas(volume.parent / "broker", settings(volume, RESERVES[1])) as broker:
        group = {"bootstrap.servers": broker.bootstrap, "group.id": "readers"}
        consumer = Consumer(group)
        offsets = [TopicPartition("filling", 0, 1)]
        with wire_to(broker) as wire:
            wire.create_topic("filling")
        consumer.commit(offsets=offsets, asynchronous=False)
        Writer(broker, "filling").write_until(ErrorCode.KAFKA_STORAGE_ERROR)
        offsets[0].offset = 3
        consumer.commit(offsets=offsets, asynchronous=False)
        (committed,) = consumer.committed(offsets, timeout=seconds(ANSWER))
        assert committed.offset == 3
        consumer.close()


def test_a_short_write_leaves_no_half_batch(tmp_path: Path) -> None:
    """What a write left before the end of the disk is cut back: the log goes on behind its end."""
    directory = tmp_path / "volume"
    (directory / "logs").mkdir(parents=True)
    with FaultyDisk(directory) as disk:
        given = settings(directory, "0")
        with Barnabas(tmp_path / "broker", given, disk.environment) as broker:
            with wire_to(broker) as wire:
                wire.create_topic("short")
                writer = Writer(broker, "short", size=5000)
                assert writer.write(wire) == ErrorCode.NONE
                (log,) = (directory / "logs" / "short-0").glob("*.log")
                size = log.stat().st_size
                disk.fill(room=808)
                assert writer.write(wire) == ErrorCode.KAFKA_STORAGE_ERROR
                assert disk.faults.room == 0
                assert log.stat().st_size == size
                assert writer.write(wire) == ErrorCode.KAFKA_STORAGE_ERROR
            disk.heal()
            writer.write_until(ErrorCode.NONE)
            writer.assert_all_is_there()
