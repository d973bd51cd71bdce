"""The broker is killed under load, again and again: what it acknowledged is there, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import TopicPartition

from tests.clients import START_MS
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import consumer
from tests.faults.load import Load, in_order, stored
from tests.waiting import ANSWER, seconds

TOPIC: Final = "killed"
KILLS: Final = 4
KILLS_OF_SOAK: Final = 100
RECORDS_BETWEEN: Final = 3000
#: Segments of some hundred records with dense indexes, so that kills meet rolls and index entries.
SETTINGS: Final = {
    "broker.id": "0",
    "num.partitions": "2",
    "log.segment.bytes": "100000",
    "log.index.interval.bytes": "300",
    "log.flush.interval.messages": "700",
    "log.flush.offset.checkpoint.interval.ms": "50",
}


def killed_under(load: Load, broker: Barnabas, kills: int = KILLS) -> None:
    """Kill the broker while records are on their way, and start it again; several times."""
    for number in range(1, kills + 1):
        load.send_until(number * RECORDS_BETWEEN)
        broker.kill()
        broker.start()
    load.finish()


def check_lookups(broker: Barnabas, keys: dict[tuple[int, int], bytes]) -> None:
    """The rebuilt indexes find each moment where it is: timestamps grow with the keys."""
    first: dict[tuple[int, int], int] = {}
    for (partition, offset), key in keys.items():
        number = int(key)
        first[partition, number] = min(offset, first.get((partition, number), offset))
    some = list(first.items())[::97]
    with consumer(broker.bootstrap) as reader:
        for (partition, number), offset in some:
            wanted = [TopicPartition(TOPIC, partition, START_MS + number)]
            (found,) = reader.offsets_for_times(wanted, timeout=seconds(ANSWER))
            assert found.offset == offset, number


def check_exactly_once(load: Load, broker: Barnabas) -> None:
    """Every record is there once, where it was acknowledged, and in order."""
    keys = stored(broker.bootstrap, TOPIC)
    assert keys == {place: key for key, place in load.acknowledged.items()}
    assert in_order(keys)
    check_lookups(broker, keys)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_idempotent_producers_go_on(tmp_path: Path, codec: str) -> None:
    """Every record is there once, where it was acknowledged, and in order."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        settings: dict[str, Any] = {"enable.idempotence": True, "compression.type": codec}
        load = Load(broker.bootstrap, TOPIC, **settings)
        killed_under(load, broker)
        check_exactly_once(load, broker)


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["replicated", "fsync"])
def test_a_hundred_kills(tmp_path: Path, durability: str) -> None:
    """However often that happens, and whenever records count."""
    with Barnabas(tmp_path, SETTINGS | {"barnabas.durability": durability}) as broker:
        load = Load(broker.bootstrap, TOPIC, **{"enable.idempotence": True})
        killed_under(load, broker, KILLS_OF_SOAK)
        check_exactly_once(load, broker)


def test_acknowledged_records_survive(tmp_path: Path) -> None:
    """Without idempotence a record may be there twice, but it is where it was acknowledged."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        load = Load(broker.bootstrap, TOPIC, acks=1)
        killed_under(load, broker)
        keys = stored(broker.bootstrap, TOPIC)
        for key, place in load.acknowledged.items():
            assert keys[place] == key
        assert set(keys.values()) == set(load.acknowledged)
