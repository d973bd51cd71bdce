"""AlterReplicaLogDirs, as a client sees it: the verdicts; moves are in test_log_mover.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.broker.server.running import Wire, port_of, running_node


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("disks")
    (root / "broken").touch()
    return [root / "one", root / "two", root / "broken"]


@pytest.fixture(scope="module")
def node(disks: list[Path]) -> Iterator[BrokerServer]:
    """A broker with three log directories, one of which cannot be used."""
    with running_node(disks[0], {"log.dirs": ",".join(map(str, disks))}) as running:
        yield running


@pytest.fixture
def wire(node: BrokerServer) -> Iterator[Wire]:
    with Wire(port_of(node)) as connection:
        yield connection


def ask(wire: Wire, version: int, *wanted: tuple[str, TopicPartition]) -> dict[TopicPartition, int]:
    """Error codes by partition."""
    dirs = [
        AlterReplicaLogDir(
            path=path, topics=[AlterReplicaLogDirTopic(name=tp.topic, partitions=[tp.partition])]
        )
        for path, tp in wanted
    ]
    response = wire.ask(AlterReplicaLogDirsRequest(dirs=dirs), version)
    return {
        TopicPartition(topic.topic_name, entry.partition_index): entry.error_code
        for topic in response.results
        for entry in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
def test_each_partition_has_its_verdict(wire: Wire, disks: list[Path], version: int) -> None:
    """An unknown directory, one that is offline, an unknown partition, a name with no room."""
    tp = TopicPartition(f"there-{version}", 0)
    wire.create_topic(tp.topic, partitions=4)
    one, _, broken = map(str, disks)
    long = TopicPartition("x" * 240, 0)
    unknown = TopicPartition("unknown", 0)
    assert ask(
        wire,
        version,
        (one, tp),
        ("/nowhere", tp._replace(partition=1)),
        (broken, tp._replace(partition=2)),
        (one, tp._replace(partition=9)),
        (one, unknown),
        (one, long),
    ) == {
        tp: ErrorCode.NONE,
        tp._replace(partition=1): ErrorCode.LOG_DIR_NOT_FOUND,
        tp._replace(partition=2): ErrorCode.KAFKA_STORAGE_ERROR,
        tp._replace(partition=9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        long: ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_partition_is_made_where_it_was_wanted(
    wire: Wire, node: BrokerServer, disks: list[Path]
) -> None:
    """The directory is remembered for partitions that do not exist yet."""
    for index, path in enumerate(disks[:2] * 2):
        tp = TopicPartition(f"later-{index}", 0)
        ask(wire, 2, (str(path), tp))
        wire.create_topic(tp.topic)
        assert node.broker.logs.logs[tp].directory.parent == path


def test_of_two_wishes_the_last_counts(wire: Wire, node: BrokerServer, disks: list[Path]) -> None:
    """As in Kafka, one answer for a partition that is named twice."""
    tp = TopicPartition("twice", 0)
    wire.create_topic(tp.topic)
    home = node.broker.logs.logs[tp].directory.parent
    assert ask(wire, 2, ("/nowhere", tp), (str(home), tp)) == {tp: ErrorCode.NONE}
    assert not node.broker.logs.moves
