"""Compaction under load, with the broker killed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import read_all
from tests.waiting import ANSWER, SETTLE, seconds, wait_for

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


def test_last_values_survive_kills(tmp_path: Path) -> None:
    """Of every key the last acknowledged value is there once at its offset, and a group goes on
    where it committed last; the logs have not grown with what was written.
    """
    last: dict[bytes, tuple[int, bytes]] = {}
    with Barnabas(tmp_path, SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        new = NewTopic("states", 1, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([new])["states"].result(seconds(ANSWER))
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "log_level": 0,
                "batch.size": 20000,
                # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
                "metadata.recovery.strategy": "none",
                "reconnect.backoff.max.ms": 500,
            }
        )
        group = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "g",
                "log_level": 0,
                "metadata.recovery.strategy": "none",
                "reconnect.backoff.max.ms": 500,
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
        assert producer.flush(seconds(SETTLE)) == 0
        assert len(last) == KEYS
        wanted = ("states-0: cleaned", "__consumer_offsets-0: cleaned")
        wait_for(
            f"the broker's log, to contain {wanted}",
            broker.log_file.read_text,
            until=lambda log: all(each in log for each in wanted),
        )
        found = read_all(broker.bootstrap, "states")
        assert len(found) < KILLS * BETWEEN
        assert {it.key(): (it.offset(), it.value()) for it in found} == last
        offsets = [it.offset() or 0 for it in found]
        assert offsets == sorted(set(offsets))
        place = TopicPartition("states", 0)
        (committed,) = group.committed([place], timeout=seconds(ANSWER))
        assert committed.offset == KILLS * BETWEEN - 50
        broker.stop()
        assert "the partition is not compacted" not in broker.tail(10**6)
