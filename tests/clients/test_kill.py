"""The broker is killed under load, again and again: what it acknowledged is there, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Message, Producer, TopicPartition

from tests.clients import START_MS
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import consumer, read_all

KILLS: Final = 4
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


class Load:
    """A producer that goes on over the deaths of its broker, and what was acknowledged to it."""

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.sent = 0
        self.refused: list[Any] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 60_000,
                **settings,
            }
        )

    def send_until(self, acknowledged: int) -> None:
        """Keep sending until so many records are acknowledged; others are still on their way."""
        while len(self.acknowledged) < acknowledged:
            if self.sent < acknowledged + 2000:
                self._producer.produce(
                    "killed",
                    b"%d" % self.sent + b"." * (self.sent % 90),
                    key=b"%d" % self.sent,
                    partition=self.sent % 2,
                    timestamp=START_MS + self.sent,
                    on_delivery=self._told,
                )
                self.sent += 1
            self._producer.poll(0 if self.sent % 50 else 0.001)

    def finish(self) -> None:
        """Wait for every record that is on its way."""
        assert self._producer.flush(60) == 0
        assert self.refused == []
        assert len(self.acknowledged) == self.sent

    def _told(self, error: Any, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
            return
        key, partition, offset = message.key(), message.partition(), message.offset()
        assert isinstance(key, bytes)
        assert partition is not None
        assert offset is not None
        self.acknowledged[key] = (partition, offset)


def killed_under(load: Load, broker: Barnabas) -> None:
    """Kill the broker while records are on their way, and start it again; several times."""
    for number in range(1, KILLS + 1):
        load.send_until(number * RECORDS_BETWEEN)
        broker.kill()
        broker.start()
    load.finish()


def stored(broker: Barnabas) -> dict[tuple[int, int], bytes]:
    """The keys of all records, by partition and offset."""
    found = {}
    for partition in (0, 1):
        for message in read_all(broker.bootstrap, "killed", partition):
            key, offset = message.key(), message.offset()
            assert isinstance(key, bytes)
            assert offset is not None
            found[partition, offset] = key
    return found


def check_lookups(broker: Barnabas, keys: dict[tuple[int, int], bytes]) -> None:
    """The rebuilt indexes find each moment where it is: timestamps grow with the keys."""
    first: dict[tuple[int, int], int] = {}
    for (partition, offset), key in keys.items():
        number = int(key)
        first[partition, number] = min(offset, first.get((partition, number), offset))
    some = list(first.items())[::97]
    with consumer(broker.bootstrap) as reader:
        for (partition, number), offset in some:
            wanted = [TopicPartition("killed", partition, START_MS + number)]
            (found,) = reader.offsets_for_times(wanted, timeout=20)
            assert found.offset == offset, number


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_idempotent_producers_go_on(tmp_path: Path, codec: str) -> None:
    """Every record is there once, where it was acknowledged, and in order."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        load = Load(broker.bootstrap, **{"enable.idempotence": True, "compression.type": codec})
        killed_under(load, broker)
        keys = stored(broker)
        assert keys == {place: key for key, place in load.acknowledged.items()}
        for partition in (0, 1):
            numbers = [int(key) for (where, _), key in keys.items() if where == partition]
            assert numbers == sorted(numbers)
        check_lookups(broker, keys)


def test_acknowledged_records_survive(tmp_path: Path) -> None:
    """Without idempotence a record may be there twice, but it is where it was acknowledged."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        load = Load(broker.bootstrap, acks=1)
        killed_under(load, broker)
        keys = stored(broker)
        for key, place in load.acknowledged.items():
            assert keys[place] == key
        assert set(keys.values()) == set(load.acknowledged)
