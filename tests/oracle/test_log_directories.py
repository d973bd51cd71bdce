"""Moves between log directories: Apache's verdicts are ours, and its tools see ours."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.server.running import Wire
from tests.clients.brokers import Barnabas, Broker
from tests.oracle.apache import ApacheKafka, run_tool
from tests.waiting import wait_for

pytestmark = pytest.mark.jvm

TP = TopicPartition("moving", 0)
MOVER = Path(__file__).parent / "java" / "Mover.java"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


@pytest.fixture
def disks() -> Iterator[list[Path]]:
    """Two directories that can be used and a file that cannot."""
    with tempfile.TemporaryDirectory() as holder:
        (Path(holder) / "broken").touch()
        yield [Path(holder) / name for name in ("one", "two", "broken")]


def connect(broker: Broker) -> Wire:
    return Wire(int(broker.bootstrap.rpartition(":")[2]))


def alter(wire: Wire, *wanted: tuple[Path | str, TopicPartition]) -> dict[TopicPartition, str]:
    """The name of the verdict for each partition."""
    dirs = [
        AlterReplicaLogDir(
            path=str(path),
            topics=[AlterReplicaLogDirTopic(name=tp.topic, partitions=[tp.partition])],
        )
        for path, tp in wanted
    ]
    response = wire.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2)
    return {
        TopicPartition(topic.topic_name, it.partition_index): ErrorCode(it.error_code).name
        for topic in response.results
        for it in topic.partitions
    }


def copies(wire: Wire) -> list[tuple[str, int, bool]]:
    """Directory, lag and whether it is a future one, of each copy of the partition."""
    return [
        (Path(result.log_dir).name, it.offset_lag, it.is_future_key)
        for result in wire.ask(DescribeLogDirsRequest(topics=None), 4).results
        for topic in result.topics
        for it in topic.partitions
        if (topic.name, it.partition_index) == TP
    ]


def verdicts(broker: Broker) -> dict[str, object]:
    """One of each request, by what is special about it."""
    one, two = broker.log_dirs
    reported: dict[str, object] = {}
    with connect(broker) as wire:
        wire.create_topic(TP.topic, partitions=2)
        other = TP._replace(partition=1)
        reported["unknown directory"] = alter(wire, ("/nowhere", TP))
        reported["parent directory"] = alter(wire, (one.parent, TP))
        reported["trailing slash"] = alter(wire, (f"{one}/", TP))
        reported["unknown partition"] = alter(wire, (one, TP._replace(partition=9)))
        reported["unknown topic"] = alter(wire, (one, TopicPartition("unknown", 0)))
        reported["long name"] = alter(wire, (one, TopicPartition("x" * 240, 0)))
        reported["nothing"] = alter(wire)
        reported["several"] = alter(wire, (one, TP), ("/nowhere", other))
        for number, path in enumerate((one, two, one, two)):
            reported[f"move {number}"] = alter(wire, (path, TP))
            await_move(wire, path.name)
    return reported


def await_move(wire: Wire, name: str) -> None:
    """Return when the directory of this name has the only copy, with all there is.

    While Apache puts one copy in the place of another it may tell of the old one only.
    """
    wait_for(
        f"the only copy in {name}",
        lambda: copies(wire),
        until=lambda found: found == [(name, 0, False)],
    )


def test_the_verdicts_are_apaches(disks: list[Path], tmp_path: Path) -> None:
    """The same requests have the same answers, and partitions arrive.

    While any directory is offline Apache refuses to move anything; we move from and to the others.
    """
    (disks[2]).unlink()
    log_dirs = ",".join(map(str, disks[:2]))
    with ApacheKafka(overrides={"log.dirs": log_dirs}, heap="512M") as apache:
        expected = verdicts(apache)
    for path in disks[:2]:
        shutil.rmtree(path)
    with Barnabas(tmp_path, {"log.dirs": log_dirs, "broker.id": "0"}) as ours:
        assert verdicts(ours) == expected


def test_apaches_tool_sees_our_directories(disks: list[Path], tmp_path: Path) -> None:
    """`kafka-log-dirs --describe` of 3.9.1, with a directory that is offline."""
    settings = {"log.dirs": ",".join(map(str, disks)), "broker.id": "0"}
    with Barnabas(tmp_path, settings) as ours:
        command = ["--bootstrap-server", ours.bootstrap, "--describe"]
        done = run_tool(LOG_DIRS, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    (broker,) = json.loads(done.stdout.splitlines()[-1])["brokers"]
    errors = {Path(it["logDir"]).name: it["error"] for it in broker["logDirs"]}
    assert errors.keys() == {"one", "two", "broken"}
    assert errors["one"] is errors["two"] is None
    assert "KafkaStorageException" in errors["broken"]


def test_javas_admin_moves_a_replica(disks: list[Path], tmp_path: Path) -> None:
    """`alterReplicaLogDirs` and `describeReplicaLogDirs` of kafka-clients 3.9.1."""
    settings = {"log.dirs": ",".join(map(str, disks[:2])), "broker.id": "0"}
    with Barnabas(tmp_path, settings) as ours:
        with connect(ours) as wire:
            wire.create_topic(TP.topic)
            ((home, _, _),) = copies(wire)
        source, target = disks[:2] if home == "one" else disks[1::-1]
        done = run_tool(str(MOVER), ours.bootstrap, TP.topic, str(target))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines() == [f"from {source}", f"to {target}"]
