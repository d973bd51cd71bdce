"""A real broker with two log directories, of which one fails: the other one serves on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.server.running import Wire, fetch_request
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import read_all
from tests.clients.wire import some_batch
from tests.faults.disk import FaultyDisk
from tests.faults.volumes import ext4_volume, shut_down
from tests.waiting import wait_for

TOPIC: Final = "spread"
PARTITIONS: Final = 4


@dataclass(frozen=True)
class Spread:
    """A broker on two directories with a topic in both."""

    broker: Barnabas
    good: Path
    bad: Path

    def wire(self) -> Wire:
        return Wire(int(self.broker.bootstrap.rpartition(":")[2]))

    def inside(self, directory: Path) -> list[int]:
        """The partitions that lie in a directory."""
        return sorted(int(path.name.rpartition("-")[2]) for path in directory.glob(f"{TOPIC}-*"))

    def produce(self, wire: Wire, partition: int, value: bytes = b"value") -> int:
        return wire.produce(TOPIC, some_batch(value), partition=partition).error_code

    def fetch(self, wire: Wire, partition: int) -> int:
        request = fetch_request([(TOPIC, partition, 0)])
        code: int = wire.ask(request, 12).responses[0].partitions[0].error_code
        return code

    def assert_half_served(self, wire: Wire, bad: list[int], good: list[int]) -> None:
        """What lies in the bad directory cannot be used and is told so; the rest works."""
        for partition in bad:
            assert self.produce(wire, partition) == ErrorCode.KAFKA_STORAGE_ERROR
            assert self.fetch(wire, partition) == ErrorCode.KAFKA_STORAGE_ERROR
        for partition in good:
            assert self.produce(wire, partition) == ErrorCode.NONE
            assert self.fetch(wire, partition) == ErrorCode.NONE
        metadata = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 9)
        assert {
            each.partition_index: (each.error_code, each.leader_id, each.offline_replicas)
            for each in metadata.topics[0].partitions
        } == {
            partition: (ErrorCode.LEADER_NOT_AVAILABLE, -1, [0])
            if partition in bad
            else (ErrorCode.NONE, 0, [])
            for partition in range(PARTITIONS)
        }
        described = wire.ask(DescribeLogDirsRequest(topics=None), 4)
        assert {each.log_dir: each.error_code for each in described.results} == {
            str(self.good): ErrorCode.NONE,
            str(self.bad): ErrorCode.KAFKA_STORAGE_ERROR,
        }


def settings(*directories: Path, **more: str) -> dict[str, str]:
    return {
        "broker.id": "0",
        "log.dirs": ",".join(map(str, directories)),
        "barnabas.log.dirs.min.free.bytes": "0",
    } | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    bad = tmp_path / "bad"
    bad.mkdir()
    with FaultyDisk(bad) as faulty:
        yield faulty


@pytest.fixture
def spread(tmp_path: Path, disk: FaultyDisk) -> Iterator[Spread]:
    good, bad = tmp_path / "good" / "logs", disk.prefix / "logs"
    with Barnabas(tmp_path / "broker", settings(good, bad), disk.environment) as broker:
        started = Spread(broker, good, bad)
        with started.wire() as wire:
            wire.create_topic(TOPIC, partitions=PARTITIONS)
            for partition in range(PARTITIONS):
                assert started.produce(wire, partition) == ErrorCode.NONE
        yield started


def test_an_error_takes_the_directory_with_all_its_partitions(
    spread: Spread, disk: FaultyDisk
) -> None:
    """One write meets EIO; its neighbours go too, and none comes back before the next start."""
    bad, good = spread.inside(spread.bad), spread.inside(spread.good)
    assert len(bad) == len(good) == PARTITIONS // 2
    with spread.wire() as wire:
        disk.faults.write_errno = errno.EIO
        assert spread.produce(wire, bad[0]) == ErrorCode.KAFKA_STORAGE_ERROR
        spread.assert_half_served(wire, bad, good)
        disk.heal()
        spread.assert_half_served(wire, bad, good)
    assert spread.broker.log_file.read_text().count("Log directory failed: ") == 1
    spread.broker.stop()
    spread.broker.start()
    for partition in bad:
        (record,) = read_all(spread.broker.bootstrap, TOPIC, partition)
        assert record.value() == b"value"


def test_a_restart_without_one_directory(spread: Spread, disk: FaultyDisk) -> None:
    """The broker starts, does not make empty partitions in the place of lost ones, and finds them
    again once the directory can be read."""
    bad, good = spread.inside(spread.bad), spread.inside(spread.good)
    spread.broker.stop()
    disk.break_down()
    spread.broker.start()
    with spread.wire() as wire:
        spread.assert_half_served(wire, bad, good)
        wire.create_topic("new", partitions=2)
        assert wire.produce("new", some_batch(), partition=1).error_code == ErrorCode.NONE
    assert spread.inside(spread.good) == good
    spread.broker.stop()
    disk.heal()
    spread.broker.start()
    for partition in bad:
        (record,) = read_all(spread.broker.bootstrap, TOPIC, partition)
        assert record.value() == b"value"


def test_after_a_failed_sync_nothing_is_synced_again(tmp_path: Path, disk: FaultyDisk) -> None:
    """The directory goes offline at the first failure, and its files are left alone."""
    good, bad = tmp_path / "good" / "logs", disk.prefix / "logs"
    given = settings(good, bad, log_flush_interval_messages="1")
    with Barnabas(tmp_path / "broker", given, disk.environment) as broker:
        spread = Spread(broker, good, bad)
        with spread.wire() as wire:
            wire.create_topic(TOPIC, partitions=PARTITIONS)
            partition = spread.inside(bad)[0]
            disk.faults.sync_errno = errno.EIO
            assert spread.produce(wire, partition) == ErrorCode.NONE
            until_refused(spread, wire, partition)
            syncs = disk.faults.syncs
            spread.assert_half_served(wire, spread.inside(bad), spread.inside(good))
        broker.stop()
        assert disk.faults.syncs == syncs
        assert not (bad / ".kafka_cleanshutdown").exists()
        assert (good / ".kafka_cleanshutdown").exists()


def until_refused(spread: Spread, wire: Wire, partition: int) -> None:
    """A flush runs beside the requests; its failure is seen by one of the next."""
    wait_for(
        f"the error of a fetch of {TOPIC}-{partition}",
        lambda: spread.fetch(wire, partition),
        until=lambda code: code != ErrorCode.NONE,
    )


def test_without_any_directory_the_broker_ends(tmp_path: Path, disk: FaultyDisk) -> None:
    """It says why, in one line, and its exit code is 1."""
    given = settings(disk.prefix / "logs")
    with Barnabas(tmp_path / "broker", given, disk.environment) as broker:
        with Wire(int(broker.bootstrap.rpartition(":")[2])) as wire:
            wire.create_topic(TOPIC)
            disk.break_down()
            answer = wire.produce(TOPIC, some_batch())
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert exit_code(broker) == 1
    last = broker.tail(1)
    assert last.startswith("barnabas: cannot go on: no usable log directory (")
    assert last.endswith("logs: Input/output error)")


def exit_code(broker: Barnabas) -> int | None:
    return wait_for(
        "the broker's exit code", lambda: broker.exit_code, until=lambda code: code is not None
    )


def test_a_lost_device(tmp_path: Path) -> None:
    """The same on a real file system whose device goes away; what was synced is there again."""
    good, volume = tmp_path / "good" / "logs", tmp_path / "volume"
    with ext4_volume(volume) as mounted:
        bad = mounted / "logs"
        given = settings(good, bad, log_flush_interval_messages="1")
        with Barnabas(tmp_path / "broker", given) as broker:
            spread = Spread(broker, good, bad)
            with spread.wire() as wire:
                wire.create_topic(TOPIC, partitions=PARTITIONS)
                partitions = spread.inside(bad), spread.inside(good)
                assert spread.produce(wire, partitions[0][0]) == ErrorCode.NONE
                shut_down(mounted)
                assert spread.produce(wire, partitions[0][1]) == ErrorCode.KAFKA_STORAGE_ERROR
                spread.assert_half_served(wire, *partitions)
