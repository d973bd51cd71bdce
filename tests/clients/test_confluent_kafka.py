"""librdkafka through confluent-kafka: produce, consume by assignment, limits, idempotence."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from confluent_kafka import (
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from barnabas_kafka.records.compression import Codec
from tests.clients import START_MS
from tests.clients.brokers import Broker
from tests.clients.conftest import MakeTopic
from tests.clients.librdkafka import await_end, consumer, read_all, take
from tests.clients.wire import stored_codecs
from tests.waiting import ANSWER, seconds, wait_for

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
MESSAGE_MAX_BYTES = 1_048_588
RECORD_BATCH_OVERHEAD = 61 + 20

Record = tuple[bytes | None, bytes | None]
Produce = Callable[..., list[Message]]


def some_records(count: int, *, largest: int = 3000) -> list[Record]:
    """Keys and values of many sizes, null and empty ones among them."""
    source = random.Random(count)
    sizes = [source.randrange(largest) for _ in range(count)]
    return [
        (
            None if i % 9 == 0 else b"" if i % 10 == 0 else b"key %d" % (i % 40),
            None if i % 11 == 0 else b"" if i % 12 == 0 else source.randbytes(size // 2) * 2,
        )
        for i, size in enumerate(sizes)
    ]


def contents(records: list[Message]) -> list[Record]:
    """Keys and values, as sent."""
    return [(record.key(), record.value()) for record in records]


@pytest.fixture
def produce(broker: Broker) -> Produce:
    """produce(topic, records, **settings) sends and returns the delivery reports in order."""

    def send(topic: str, records: list[Record], **settings: object) -> list[Message]:
        reports: list[Message] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise KafkaException(error)
            reports.append(message)

        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5} | settings)
        for i, (key, value) in enumerate(records):
            producer.produce(
                topic,
                value,
                key,
                partition=0,
                timestamp=START_MS + i,
                headers=[("n", b"%d" % i), ("empty", b""), ("null", None)],
                on_delivery=delivered,
            )
        assert producer.flush(seconds(ANSWER)) == 0
        return reports

    return send


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: Broker, topic: str, produce: Produce, codec: str) -> None:
    """Keys, values, null and empty, headers, timestamps and offsets come back, at every codec."""
    records = some_records(500)
    produce(topic, records, **{"compression.type": codec})
    found = read_all(broker.bootstrap, topic)
    assert contents(found) == records
    assert [record.offset() for record in found] == list(range(500))
    for i, record in enumerate(found):
        assert record.timestamp() == (TIMESTAMP_CREATE_TIME, START_MS + i)
        assert record.headers() == [("n", b"%d" % i), ("empty", b""), ("null", None)]
    # Where a broker lacks what librdkafka takes a codec's support from, it silently sends "none".
    # A batch that compression makes no smaller, as of one record, it sends so as well.
    plain = {Codec.NONE}
    assert stored_codecs(broker.bootstrap, topic) - plain == {Codec[codec.upper()]} - plain


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_acknowledgements(broker: Broker, topic: str, produce: Produce, acks: int) -> None:
    """Delivery reports carry offsets unless nobody was asked to acknowledge."""
    reports = produce(topic, some_records(50), acks=acks)
    assert len(reports) == 50
    if acks:
        assert [report.offset() for report in reports] == list(range(50))
    else:
        await_end(broker.bootstrap, topic, 50)
    assert len(read_all(broker.bootstrap, topic)) == 50


@pytest.mark.parametrize("codec", CODECS)
def test_idempotent_producer_keeps_order(
    broker: Broker, topic: str, produce: Produce, codec: str
) -> None:
    """Five batches in flight with sequences arrive once each, in order."""
    records = some_records(2000, largest=300)
    produce(
        topic,
        records,
        **{"enable.idempotence": True, "batch.num.messages": 50, "compression.type": codec},
    )
    assert contents(read_all(broker.bootstrap, topic)) == records


def test_largest_record_that_fits(broker: Broker, topic: str, produce: Produce) -> None:
    """A batch of exactly message.max.bytes is taken and fetched, above the fetch limits too."""
    value = os.urandom(MESSAGE_MAX_BYTES - 150)
    produce(topic, [(b"large", value)], **{"message.max.bytes": 2_000_000})
    found = read_all(
        broker.bootstrap, topic, **{"fetch.message.max.bytes": 1000, "fetch.max.bytes": 1_100_000}
    )
    assert contents(found) == [(b"large", value)]


def test_record_above_the_limit_is_refused(broker: Broker, topic: str, produce: Produce) -> None:
    """One byte too many is MSG_SIZE_TOO_LARGE, and nothing of it is stored."""
    value = os.urandom(MESSAGE_MAX_BYTES)
    with pytest.raises(KafkaException) as refused:
        produce(topic, [(b"large", value)], **{"message.max.bytes": 2_000_000})
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert read_all(broker.bootstrap, topic) == []


def test_topic_limit_and_large_records(
    broker: Broker, make_topic: MakeTopic, produce: Produce
) -> None:
    """A topic may allow more than the broker's default: 8 MiB records pass."""
    topic = make_topic({"max.message.bytes": "10000000"})
    records: list[Record] = [(b"%d" % i, os.urandom(8 << 20)) for i in range(2)]
    produce(topic, records, **{"message.max.bytes": 9_000_000})
    assert contents(read_all(broker.bootstrap, topic)) == records


def test_log_append_time(broker: Broker, make_topic: MakeTopic, produce: Produce) -> None:
    """The broker's clock replaces the producer's, in the answer and in the batches."""
    topic = make_topic({"message.timestamp.type": "LogAppendTime"})
    reports = produce(topic, some_records(20))
    stamps = [record.timestamp() for record in read_all(broker.bootstrap, topic)]
    assert {kind for kind, _ in stamps} == {TIMESTAMP_LOG_APPEND_TIME}
    assert all(stamp > START_MS + 1_000_000 for _, stamp in stamps)
    assert [report.timestamp()[1] for report in reports] == [stamp for _, stamp in stamps]


@pytest.mark.parametrize("stored", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("sent", ["none", "gzip"])
def test_topic_decides_the_codec(
    broker: Broker, make_topic: MakeTopic, produce: Produce, sent: str, stored: str
) -> None:
    """compression.type of a topic makes the broker compress again, and contents survive."""
    topic = make_topic({"compression.type": stored})
    records = some_records(100)
    produce(topic, records, **{"compression.type": sent})
    assert contents(read_all(broker.bootstrap, topic)) == records
    codec = Codec.NONE if stored == "uncompressed" else Codec[stored.upper()]
    assert stored_codecs(broker.bootstrap, topic) == {codec}


def test_record_without_key_on_compacted_topic(
    broker: Broker, make_topic: MakeTopic, produce: Produce
) -> None:
    """Compaction needs keys: a batch with a keyless record is refused as a whole."""
    topic = make_topic({"cleanup.policy": "compact"})
    with pytest.raises(KafkaException) as refused:
        produce(topic, [(b"key", b"value"), (None, b"value")])
    assert refused.value.args[0].code() == KafkaError.INVALID_RECORD
    assert read_all(broker.bootstrap, topic) == []


def test_timestamp_too_far_ahead(broker: Broker, make_topic: MakeTopic, produce: Produce) -> None:
    """message.timestamp.before.max.ms refuses records older than it allows."""
    topic = make_topic({"message.timestamp.before.max.ms": "1000"})
    with pytest.raises(KafkaException) as refused:
        produce(topic, [(b"key", b"value")])
    assert refused.value.args[0].code() == KafkaError.INVALID_TIMESTAMP


def test_offsets_for_times(broker: Broker, topic: str, produce: Produce) -> None:
    """The first record at or after a time; the end where there is none."""
    produce(topic, some_records(300, largest=100), **{"batch.num.messages": 20})
    reader = consumer(broker.bootstrap)
    for asked, expected in [(0, 0), (START_MS + 150, 150), (START_MS + 299, 299)]:
        query = [TopicPartition(topic, 0, asked)]
        assert reader.offsets_for_times(query, timeout=seconds(ANSWER))[0].offset == expected
    beyond = reader.offsets_for_times(
        [TopicPartition(topic, 0, START_MS + 300)], timeout=seconds(ANSWER)
    )
    assert beyond[0].offset in {OFFSET_END, 300}
    reader.close()


def test_reading_from_the_middle_and_behind_the_end(
    broker: Broker, topic: str, produce: Produce
) -> None:
    """Any offset inside a batch starts there; an offset out of range is reported as such."""
    records = some_records(100, largest=100)
    produce(topic, records)
    assert contents(read_all(broker.bootstrap, topic, start=57)) == records[57:]
    reader = consumer(broker.bootstrap)
    reader.assign([TopicPartition(topic, 0, 5000)])
    message = wait_for("a message", lambda: reader.poll(1))
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET
    reader.close()


def test_consumer_waiting_at_the_end_gets_what_comes(
    broker: Broker, topic: str, produce: Produce
) -> None:
    """A parked fetch is answered by an append, long before its maximal wait is over."""
    reader = consumer(
        broker.bootstrap, **{"fetch.wait.max.ms": 60_000, "socket.timeout.ms": 90_000}
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    assert reader.poll(0.5) is None
    records = some_records(3)
    for i, record in enumerate(records):
        produce(topic, [record])
        assert contents(take(reader, i + 1, position=i)) == [record]
    reader.close()


def test_many_partitions(broker: Broker, make_topic: MakeTopic) -> None:
    """One fetch serves many partitions, each its own records."""
    topic = make_topic(partitions=40)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for i in range(4000):
        producer.produce(topic, b"%d" % i, partition=i % 40)
    assert producer.flush(seconds(ANSWER)) == 0
    reader = consumer(broker.bootstrap)
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(40)])
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(40)}

    def remaining() -> int:
        left = 4000 - sum(map(len, found.values()))
        for record in reader.consume(min(1000, left), 0.2):
            partition = record.partition()
            assert partition is not None
            found[partition].append(record.value())
            left -= 1
        return left

    wait_for("how many records are left", remaining, until=lambda left: left == 0)
    reader.close()
    assert found == {
        partition: [b"%d" % i for i in range(partition, 4000, 40)] for partition in range(40)
    }
