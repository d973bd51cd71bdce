"""The broker is killed under load, again and again: what it acknowledged is there, and once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from barnabas_broker.log.checkpoints import parse_offsets
from barnabas_kafka.ids import TopicPartition
from tests.clients import START_MS
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import consumer
from tests.faults.load import Load, in_order, stored
from tests.waiting import ANSWER, SETTLE, seconds, wait_for

TOPIC: Final = "killed"
KILLS: Final = 4
KILLS_OF_SOAK: Final = 100
RECORDS_BETWEEN: Final = 3000
#: Many logs of several segments each, of four records.
LOGS: Final = 20
SEGMENTS: Final = 6
RECORD_BYTES: Final = 24_000
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
            wanted = [KafkaPartition(TOPIC, partition, START_MS + number)]
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


def test_flushed_segments_are_not_read_again(tmp_path: Path) -> None:
    """After a kill recovery begins at the recovery point of each log, as Kafka's does.

    Scanning would find the damage, and cut the log there.
    """
    with Barnabas(tmp_path, SETTINGS | {"num.partitions": str(LOGS)}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        for _ in range(SEGMENTS):
            for partition in range(LOGS):
                for _ in range(2):
                    producer.produce(TOPIC, bytes(RECORD_BYTES), partition=partition)
            assert producer.flush(seconds(SETTLE)) == 0
        wait_for("recovery points of all flushed segments", lambda: are_flushed(broker))
        broker.kill()
        before = broker.log_file.stat().st_size
        for partition in range(LOGS):
            damage(segments(broker, partition)[0])
        damage(segments(broker, LOGS - 1)[-1])
        broker.start()
        with consumer(broker.bootstrap) as reader:
            ends = [end_of(reader, partition) for partition in range(LOGS)]
        assert ends[:-1] == [2 * SEGMENTS] * (LOGS - 1)
        assert ends[LOGS - 1] == int(segments(broker, LOGS - 1)[-1].stem)
        said = broker.log_file.read_text()[before:]
        assert f"{LOGS} unflushed segments" in said


def segments(broker: Barnabas, partition: int) -> list[Path]:
    """The segments of a partition, from the oldest to the one that is written."""
    return sorted((broker.log_dirs[0] / f"{TOPIC}-{partition}").glob("*.log"))


def are_flushed(broker: Barnabas) -> bool:
    """Whether each recovery point on disk is where the last segment begins, or after it."""
    points = parse_offsets((broker.log_dirs[0] / "recovery-point-offset-checkpoint").read_bytes())
    return all(
        points.get(TopicPartition(TOPIC, it), 0) >= int(segments(broker, it)[-1].stem) > 0
        for it in range(LOGS)
    )


def damage(segment: Path) -> None:
    """Change a byte of the first record, so that its checksum is wrong."""
    with segment.open("r+b") as file:
        file.seek(RECORD_BYTES // 2)
        file.write(b"\xff")


def end_of(reader: Consumer, partition: int) -> int:
    """Where a log ends."""
    where = KafkaPartition(TOPIC, partition)
    low_high: tuple[int, int] = reader.get_watermark_offsets(where, timeout=seconds(ANSWER))
    return low_high[1]
