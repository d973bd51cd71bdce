"""Partitions move between directories under load, and their broker is killed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.server.running import Wire
from tests.clients.brokers import Barnabas
from tests.faults.load import Load, in_order, stored
from tests.waiting import wait_for

TOPIC: Final = "moving"
RECORDS_BETWEEN: Final = 3000
ROUNDS: Final = 4
ROUNDS_OF_SOAK: Final = 60
SETTINGS: Final = {
    "broker.id": "0",
    "num.partitions": "2",
    "log.segment.bytes": "100000",
    "log.index.interval.bytes": "300",
    "log.flush.offset.checkpoint.interval.ms": "50",
}


def connect(broker: Barnabas) -> Wire:
    return Wire(int(broker.bootstrap.rpartition(":")[2]))


def homes(wire: Wire) -> dict[int, list[tuple[str, bool]]]:
    """The directory of each copy of each partition, and whether it is a future one."""
    found: dict[int, list[tuple[str, bool]]] = {}
    for result in wire.ask(DescribeLogDirsRequest(topics=None), 4).results:
        for topic in result.topics:
            for it in topic.partitions:
                if topic.name == TOPIC:
                    copies = found.setdefault(it.partition_index, [])
                    copies.append((result.log_dir, it.is_future_key))
    return found


def move_all(broker: Barnabas) -> None:
    """Send each partition from where it serves to the other directory."""
    one, two = map(str, broker.log_dirs)
    with connect(broker) as wire:
        for partition, copies in homes(wire).items():
            home = next(directory for directory, future in copies if not future)
            topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[partition])]
            entry = AlterReplicaLogDir(path=two if home == one else one, topics=topics)
            response = wire.ask(AlterReplicaLogDirsRequest(dirs=[entry]), 2)
            assert response.results[0].partitions[0].error_code == 0


def settle(broker: Barnabas) -> None:
    """Wait until nothing moves any more."""
    with connect(broker) as wire:
        wait_for(
            "one directory for each partition",
            lambda: homes(wire),
            until=lambda found: all(len(copies) == 1 for copies in found.values()),
        )


def check(load: Load, broker: Barnabas) -> None:
    """Every record is there once, where it was acknowledged, in order; in one directory."""
    keys = stored(broker.bootstrap, TOPIC)
    assert keys == {place: key for key, place in load.acknowledged.items()}
    assert in_order(keys)
    for partition in (0, 1):
        name = f"{TOPIC}-{partition}"
        assert sum((directory / name).exists() for directory in broker.log_dirs) == 1


def killed_while_moving(tmp_path: Path, durability: str, rounds: int) -> None:
    log_dirs = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    settings = {**SETTINGS, "log.dirs": log_dirs, "barnabas.durability": durability}
    with Barnabas(tmp_path / "broker", settings) as broker:
        load = Load(broker.bootstrap, TOPIC, **{"enable.idempotence": True})
        for number in range(1, rounds + 1):
            load.send_until(number * RECORDS_BETWEEN)
            move_all(broker)
            # Another moment of the move each time: records go on while it copies.
            load.send_until(number * RECORDS_BETWEEN + 40 * (number % 8))
            broker.kill()
            broker.start()
        load.finish()
        settle(broker)
        check(load, broker)
        broker.stop()
        broker.start()
        check(load, broker)


@pytest.mark.parametrize("durability", ["replicated", "fsync"])
def test_kills_while_partitions_move(tmp_path: Path, durability: str) -> None:
    """Nothing acknowledged is lost or doubled, and moves arrive after the restarts."""
    killed_while_moving(tmp_path, durability, ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("durability", ["replicated", "fsync"])
def test_many_kills_while_partitions_move(tmp_path: Path, durability: str) -> None:
    """The same for longer."""
    killed_while_moving(tmp_path, durability, ROUNDS_OF_SOAK)
