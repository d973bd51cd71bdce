"""Compaction under load, with the broker killed meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.brokers import Barnabas

SETTINGS: Final = {
    "broker.id": "0",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.bytes": "60000",
    "log.segment.delete.delay.ms": "100",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "5000",
}
KEYS: Final = 50
KILLS: Final = 3
BETWEEN: Final = 4000


def read(bootstrap: str, topic: str) -> list[tuple[int, bytes, bytes]]:
    """Every record that is there: offset, key, value."""
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False}
    )
    place = TopicPartition(topic, 0, 0)
    _, end = reader.get_watermark_offsets(place, timeout=60)
    reader.assign([place])
    found: list[tuple[int, bytes, bytes]] = []
    while (at := reader.position([place])[0].offset) < end:
        message = reader.poll(60)
        assert message is not None, at
        assert message.error() is None
        found.append((message.offset() or 0, message.key() or b"", message.value() or b""))
    reader.close()
    return found


def test_last_values_survive_kills(tmp_path: Path) -> None:
    """Of every key the last acknowledged value is there once at its offset, and a group goes on
    where it committed last; the logs have not grown with what was written.
    """
    last: dict[bytes, tuple[int, bytes]] = {}
    with Barnabas(tmp_path, SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        new = NewTopic("states", 1, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([new])["states"].result(60)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "log_level": 0,
                "batch.size": 20000,
                # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
                "metadata.recovery.strategy": "none",
            }
        )
        group = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "g",
                "log_level": 0,
                "metadata.recovery.strategy": "none",
            }
        )

        def acknowledged(error: object, message: object) -> None:
            assert error is None
            last[bytes(message.key())] = (message.offset(), bytes(message.value()))  # type: ignore[attr-defined]

        for number in range(KILLS * BETWEEN):
            key, value = b"%d" % (number % KEYS), b"value %d" % number
            producer.produce("states", value, key, on_delivery=acknowledged)
            producer.poll(0)
            if number % 50 == 0:
                group.commit(offsets=[TopicPartition("states", 0, number)], asynchronous=False)
            if number % BETWEEN == BETWEEN - 1:
                broker.kill()
                broker.start()
        assert producer.flush(120) == 0
        assert len(last) == KEYS
        deadline, waiting = time.monotonic() + 120, threading.Event()
        for cleaned in ("states-0: cleaned", "__consumer_offsets-0: cleaned"):
            while cleaned not in broker.tail(10**6):
                assert time.monotonic() < deadline
                waiting.wait(0.05)
        found = read(broker.bootstrap, "states")
        assert len(found) < KILLS * BETWEEN
        assert {key: (offset, value) for offset, key, value in found} == last
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        committed = group.committed([TopicPartition("states", 0)], timeout=60)[0].offset
        assert committed == KILLS * BETWEEN - 50
        broker.stop()
        assert "cannot be compacted" not in broker.tail(10**6)
