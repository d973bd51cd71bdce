"""Topics of every kind, filled through librdkafka, and everything a broker can tell about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients import START_MS
from tests.clients.librdkafka import consumer, read_all
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for

#: Small segments with dense indexes, so that a few hundred records fill several of them.
SMALL_SEGMENTS: Final = {"segment.bytes": "20000", "index.interval.bytes": "200"}

TOPICS: Final[dict[str, dict[str, str]]] = {
    "codecs": {"index.interval.bytes": "1"},
    "rolled": SMALL_SEGMENTS,
    "idempotent": SMALL_SEGMENTS,
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "beheaded": SMALL_SEGMENTS,
    "recompressed": {"compression.type": "gzip"},
    "empty": {},
}
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_CODECS: Final = CODECS[:4]


def create(bootstrap: str, topics: dict[str, dict[str, str]]) -> None:
    """Create the topics, with two partitions each."""
    new = [NewTopic(name, num_partitions=2, config=config) for name, config in topics.items()]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics(new).values():
        future.result(seconds(ANSWER))


def send(
    bootstrap: str,
    topic: str,
    count: int,
    settings: Mapping[str, object] | None = None,
    *,
    headers: bool = True,
) -> None:
    """Append `count` records, a second apart, with null keys and values among them."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "batch.num.messages": 25} | dict(settings or {})
    )
    for i in range(count):
        producer.produce(
            topic,
            None if i % 17 == 3 else b"value %d " % i * (i % 20),
            None if i % 13 == 2 else b"key %d" % (i % 7),
            partition=0 if i % 5 else 1,
            timestamp=START_MS + i * 1000,
            headers=[("number", b"%d" % i), ("null", None)] if headers else None,
        )
    assert producer.flush(seconds(ANSWER)) == 0


def fill(bootstrap: str) -> None:
    """Fill TOPICS, or append as much again."""
    for codec in CODECS:
        send(bootstrap, "codecs", 60, {"compression.type": codec})
    send(bootstrap, "rolled", 900)
    send(bootstrap, "idempotent", 300, {"enable.idempotence": True})
    send(bootstrap, "stamped", 50)
    send(bootstrap, "beheaded", 400)
    send(bootstrap, "recompressed", 50)
    partition = TopicPartition("beheaded", 0, 123)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([partition])[partition].result(seconds(ANSWER))


def await_leaders(bootstrap: str, topics: Iterable[str]) -> None:
    """Return once every partition has a leader: Apache accepts connections before that."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def leaderless() -> list[str]:
        known = admin.list_topics(timeout=ATTEMPT_S).topics
        return [
            topic
            for topic in topics
            if topic not in known
            or any(partition.leader < 0 for partition in known[topic].partitions.values())
        ]

    wait_for(
        "a leader of every partition",
        leaderless,
        until=lambda missing: not missing,
        retry=(KafkaException,),
    )


def account(bootstrap: str, topics: Iterable[str], *, times: bool = True) -> dict[str, Any]:
    """Every record, the watermarks, and the answers to questions for times, by partition."""
    await_leaders(bootstrap, topics)
    reported: dict[str, Any] = {}
    asker = consumer(bootstrap)
    for topic in topics:
        for number in (0, 1):
            reported[f"{topic}-{number}"] = {
                "watermarks": asker.get_watermark_offsets(
                    TopicPartition(topic, number), timeout=seconds(ANSWER)
                ),
                "times": [_offset_at(asker, topic, number, i * 77_000) for i in range(8) if times],
                "records": [
                    (record.offset(), record.timestamp(), *_content(record))
                    for record in read_all(bootstrap, topic, number)
                ],
            }
    asker.close()
    return reported


def _content(record: Message) -> tuple[Any, Any, Any]:
    return record.key(), record.value(), record.headers()


def _offset_at(asker: Any, topic: str, partition: int, after_ms: int) -> int:
    query = [TopicPartition(topic, partition, START_MS + after_ms)]
    offset: int = asker.offsets_for_times(query, timeout=seconds(ANSWER))[0].offset
    return offset
