"""Partitions that move between log directories of a running broker."""

import errno
import math
import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from barnabas_broker.server.background.throttle import Throttle
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas_kafka.records import batch
from barnabas_kafka.records.builder import build_batch
from tests.broker.log.disk import Disk, using
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import wait_for

TP = TopicPartition("orders", 0)
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def disks(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "one", tmp_path / "two"


@contextmanager
def broker_on(disks: tuple[Path, Path], **settings: str) -> Iterator[tuple[BrokerServer, Wire]]:
    """A broker with two log directories; in the names of settings underscores stand for dots."""
    more = {name.replace("_", "."): value for name, value in settings.items()}
    given = {"log.dirs": ",".join(map(str, disks)), **more}
    with running_node(disks[0], given) as node, Wire(port_of(node)) as wire:
        yield node, wire


def move(wire: Wire, path: Path, tp: TopicPartition = TP) -> ErrorCode:
    """Ask for a move; returns what the answer says."""
    topics = [AlterReplicaLogDirTopic(name=tp.topic, partitions=[tp.partition])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=topics)])
    response = wire.ask(request, 2)
    return ErrorCode(response.results[0].partitions[0].error_code)


def replicas(wire: Wire, tp: TopicPartition = TP) -> dict[tuple[str, bool], tuple[int, int]]:
    """(directory, whether it is a future one) → (size, lag) of every copy."""
    found: dict[tuple[str, bool], tuple[int, int]] = {}
    for result in wire.ask(DescribeLogDirsRequest(topics=None), 4).results:
        for topic in result.topics:
            entry: DescribeLogDirsPartition
            for entry in topic.partitions:
                if (topic.name, entry.partition_index) == tp:
                    key = Path(result.log_dir).name, entry.is_future_key
                    found[key] = entry.partition_size, entry.offset_lag
    return found


def until_moved(wire: Wire, target: Path) -> None:
    """Wait until the partition is there and nowhere else."""
    wait_for(
        f"the only replica in {target.name}",
        lambda: replicas(wire),
        until=lambda found: found.keys() == {(target.name, False)},
    )


def other_than_home(node: BrokerServer, disks: tuple[Path, Path], tp: TopicPartition = TP) -> Path:
    return next(path for path in disks if path != node.broker.logs.logs[tp].directory.parent)


def until_moves_end(node: BrokerServer) -> None:
    """Wait until nothing is being moved."""
    wait_for("no moves", lambda: node.broker.logs.moves, until=lambda moves: not moves)


def throttle(wire: Wire, rate: int) -> None:
    """Set the rate of moves, as tools do at run time."""
    config = AlterableConfig(name=RATE, config_operation=0, value=str(rate))
    resource = AlterConfigsResource(resource_type=4, resource_name="0", configs=[config])
    response = wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0


def numbered(*numbers: int, size: int = 200) -> bytes:
    """A batch of records that have a number for their key."""
    return build_batch([(1000 + n, b"%d" % n, b"x" * size, ()) for n in numbers])


def read_keys(wire: Wire) -> list[int]:
    """The keys of all records, in the order of the log."""
    keys: list[int] = []
    offset = 0
    while data := wire.fetch(TP.topic, offset).records:
        assert isinstance(data, bytes | bytearray | memoryview)
        for position, header in batch.headers(data):
            keys += [int(record.key or b"") for record in batch.records(data, position)]
            offset = header.next_offset
    return keys


def names(path: Path) -> list[str]:
    """The directories of a log directory, those to be removed left out."""
    return sorted(it.name for it in path.iterdir() if it.is_dir() and "-delete" not in it.name)


def test_a_partition_moves(disks: tuple[Path, Path]) -> None:
    """Its records, id and producers are in the other directory; and stay there at a restart."""
    with broker_on(disks) as (node, wire):
        wire.create_topic(TP.topic, segment_bytes="20000")
        for first in range(0, 600, 10):
            wire.produce(TP.topic, numbered(*range(first, first + 10)))
        target = other_than_home(node, disks)
        former = node.broker.logs.logs[TP]
        assert move(wire, target) is ErrorCode.NONE
        until_moves_end(node)
        assert replicas(wire) == {(target.name, False): (former.size, 0)}
        assert node.broker.logs.logs[TP].topic_id == former.topic_id
        assert former.directory.name.endswith("-delete")
        wire.produce(TP.topic, numbered(600))
        assert read_keys(wire) == list(range(601))
    with broker_on(disks) as (node, wire):
        assert node.broker.logs.logs[TP].directory.parent == target
        assert read_keys(wire) == list(range(601))
        wire.produce(TP.topic, numbered(601))
        assert read_keys(wire) == list(range(602))
    assert sum(names(path) == ["orders-0"] for path in disks) == 1


def stalled(node: BrokerServer, wire: Wire, disks: tuple[Path, Path]) -> Path:
    """Begin a move of a topic of 100 records that gets nowhere; returns where to."""
    # The records are old, and a full directory has retention look at once.
    wire.create_topic(TP.topic, retention_ms="-1")
    wire.produce(TP.topic, numbered(*range(100)))
    throttle(wire, 0)
    target = other_than_home(node, disks)
    assert move(wire, target) is ErrorCode.NONE
    wait_for("a future log", lambda: node.broker.logs.moves[TP].path.exists())
    return target


def test_the_rate_is_held_and_can_be_changed(disks: tuple[Path, Path]) -> None:
    """With 0 nothing moves; what is there is shown as a future replica with its lag."""
    with broker_on(disks) as (node, wire):
        target = stalled(node, wire, disks)
        assert replicas(wire)[target.name, True] == (0, 100)
        wire.produce(TP.topic, numbered(100))
        assert replicas(wire)[target.name, True] == (0, 101)
        throttle(wire, 1 << 40)
        until_moves_end(node)
        assert replicas(wire).keys() == {(target.name, False)}
        assert read_keys(wire) == list(range(101))


def test_a_move_home_cancels(disks: tuple[Path, Path]) -> None:
    """The copy goes, the source serves on."""
    with broker_on(disks) as (node, wire):
        target = stalled(node, wire, disks)
        home = node.broker.logs.logs[TP].directory.parent
        assert move(wire, target) is ErrorCode.NONE
        assert len(replicas(wire)) == 2
        assert move(wire, home) is ErrorCode.NONE
        assert replicas(wire).keys() == {(home.name, False)}
        wait_for("an empty target", lambda: names(target), until=lambda found: found == [])
        assert read_keys(wire) == list(range(100))
        assert move(wire, home) is ErrorCode.NONE
        assert not node.broker.logs.moves


def test_a_move_can_be_sent_elsewhere(tmp_path: Path) -> None:
    """The last directory asked for is where the partition arrives."""
    disks = tmp_path / "one", tmp_path / "two"
    three = {"log.dirs": ",".join(map(str, [*disks, tmp_path / "three"]))}
    with running_node(tmp_path, three) as node, Wire(port_of(node)) as wire:
        first = stalled(node, wire, disks)
        assert move(wire, tmp_path / "three") is ErrorCode.NONE
        throttle(wire, 1 << 40)
        until_moves_end(node)
        assert replicas(wire).keys() == {("three", False)}
        assert names(first) == []
        assert read_keys(wire) == list(range(100))


def test_a_deleted_topic_takes_its_copy_along(disks: tuple[Path, Path]) -> None:
    """Nothing is left of either, and a topic of that name can be made again."""
    with broker_on(disks, file_delete_delay_ms="0") as (node, wire):
        stalled(node, wire, disks)
        topics = [DeleteTopicState(name=TP.topic)]
        response = wire.ask(DeleteTopicsRequest(topics=topics, timeout_ms=5000), 6)
        assert response.responses[0].error_code == 0
        wait_for("empty disks", lambda: [*map(names, disks)], until=lambda found: found == [[], []])
        wire.create_topic(TP.topic)
        assert read_keys(wire) == []


def test_a_move_goes_on_after_a_restart(disks: tuple[Path, Path]) -> None:
    """With what was copied before, to the directory it was going to."""
    with broker_on(disks) as (node, wire):
        target = stalled(node, wire, disks)
        throttle(wire, 1000)
        wait_for("bytes in the future log", lambda: replicas(wire)[target.name, True][0])
        for first in range(100, 1000, 100):
            wire.produce(TP.topic, numbered(*range(first, first + 100)))
    (future,) = names(target)
    assert future.endswith("-future")
    with broker_on(disks) as (node, wire):
        throttle(wire, 1 << 40)
        until_moves_end(node)
        assert replicas(wire).keys() == {(target.name, False)}
        assert read_keys(wire) == list(range(1000))


@pytest.mark.parametrize("durability", ["replicated", "fsync"])
def test_nothing_is_lost_under_load(disks: tuple[Path, Path], durability: str) -> None:
    """To and fro while a producer writes: every acknowledged record once, in order."""
    with broker_on(disks, barnabas_durability=durability) as (node, wire):
        wire.create_topic(TP.topic, segment_bytes="50000")
        sent = 0
        ended = threading.Event()

        def produce() -> None:
            nonlocal sent
            with Wire(port_of(node)) as own:
                while not ended.is_set():
                    answer = own.produce(TP.topic, numbered(sent, sent + 1))
                    assert (answer.error_code, answer.base_offset) == (0, sent)
                    sent += 2

        producer = threading.Thread(target=produce)
        producer.start()
        try:
            for _ in range(2):
                target = other_than_home(node, disks)
                before = sent
                assert move(wire, target) is ErrorCode.NONE
                until_moved(wire, target)
                wait_for("more records", lambda: sent, until=partial(operator.lt, before))
                until_moves_end(node)
        finally:
            ended.set()
            producer.join()
        assert read_keys(wire) == list(range(sent))


def test_a_target_that_fails_ends_the_move(disks: tuple[Path, Path]) -> None:
    """The move is given up, its directory offline, and the source serves on."""
    with (
        using(Disk(disks[0].parent)) as disk,
        broker_on(disks) as (node, wire),
    ):
        target = stalled(node, wire, disks)
        copying = node.broker.logs.moves[TP].path
        disk.fail("pwrite", errno.EIO, path=str(copying / "00000000000000000000.log"))
        throttle(wire, 1 << 40)
        until_moves_end(node)
        assert replicas(wire).keys() == {(node.broker.logs.logs[TP].directory.parent.name, False)}
        assert wire.produce(TP.topic, numbered(100)).error_code == 0
        assert read_keys(wire) == list(range(101))
        assert move(wire, target) is ErrorCode.KAFKA_STORAGE_ERROR
        disk.repair()


def test_a_full_target_is_waited_for(disks: tuple[Path, Path]) -> None:
    """The source serves meanwhile, and the partition arrives whole when there is room."""
    with (
        using(Disk(disks[0].parent)) as disk,
        broker_on(disks) as (node, wire),
    ):
        target = stalled(node, wire, disks)
        copying = node.broker.logs.moves[TP].path
        segment = str(copying / "00000000000000000000.log")
        full = disk.fail("pwrite", errno.ENOSPC, path=segment, times=2, short=7)
        throttle(wire, 1 << 40)
        wait_for("a write that met the full disk", lambda: full.times, until=lambda it: it != 2)
        assert wire.produce(TP.topic, numbered(100)).error_code == 0
        until_moved(wire, target)
        assert full.times == 0
        assert read_keys(wire) == list(range(101))


def test_a_source_that_fails_takes_the_partition_offline(disks: tuple[Path, Path]) -> None:
    """As without a move; what was copied so far is no replacement."""
    with (
        using(Disk(disks[0].parent)) as disk,
        broker_on(disks) as (node, wire),
    ):
        target = stalled(node, wire, disks)
        home = node.broker.logs.logs[TP].directory.parent
        disk.fail("pwrite", errno.EIO, path=str(home / "orders-0/00000000000000000000.log"))
        assert wire.produce(TP.topic, numbered(1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        throttle(wire, 1 << 40)
        until_moves_end(node)
        assert wire.produce(TP.topic, numbered(1)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert move(wire, target) is ErrorCode.KAFKA_STORAGE_ERROR
        disk.repair()


def test_a_compacted_log_is_not_cleaned_meanwhile(disks: tuple[Path, Path]) -> None:
    """A key's tombstone must not go between the copies of the key and of the tombstone."""
    with broker_on(disks) as (node, wire):
        stalled(node, wire, disks)
        log = node.broker.logs.logs[TP]
        assert node.cleaner is not None
        manager, resources = node.cleaner.manager, node.cleaner.resources
        log.config = replace(log.config, compact=True, min_cleanable_ratio=0.0)
        log.roll(0)
        assert manager.pick(10**15, resources) is None
        move(wire, node.broker.logs.logs[TP].directory.parent)
        task = manager.pick(10**15, resources)
        assert task is not None
        manager.abandon(task, "the test is over")


def test_pauses_make_up_for_what_went_through() -> None:
    """3000 bytes at 1000 a second take three seconds, however they are asked about."""
    throttle = Throttle()
    throttle.took(3000)
    assert throttle.pause_s(100.0, 1000) == 0  # Nothing is known of the time before.
    throttle.took(3000)
    assert throttle.pause_s(100.0, 1000) == 3
    assert throttle.pause_s(101.0, 1000) == 2
    assert throttle.pause_s(104.0, 1000) == 0


def test_idle_time_is_not_saved_up() -> None:
    """After an hour of nothing the rate is the rate."""
    throttle = Throttle()
    assert throttle.pause_s(0.0, 1000) == 0
    assert throttle.pause_s(3600.0, 1000) == 0
    throttle.took(2000)
    assert throttle.pause_s(3600.0, 1000) == 2


def test_a_new_rate_counts_at_once() -> None:
    """What is left of a pause shrinks with it; a rate of 0 lets nothing through."""
    throttle = Throttle()
    throttle.pause_s(10.0, 1)
    throttle.took(1000)
    assert throttle.pause_s(10.0, 1) == 1000
    assert throttle.pause_s(10.0, 1000) == 1
    assert throttle.pause_s(10.0, 0) == math.inf
    assert Throttle().pause_s(0.0, 0) == math.inf
