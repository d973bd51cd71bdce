"""Batches no client should send: what the broker looks at before it appends, and what it answers.

The errors are Apache's; each comes from its LogValidator, ProducerAppendInfo or ReplicaManager.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from barnabas_kafka.records import batch, legacy
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec, compress
from barnabas_kafka.records.crc import crc32c
from tests.clients import START_MS, wire
from tests.clients.brokers import KIND, Broker
from tests.clients.conftest import MakeTopic
from tests.clients.wire import Wire

Content = tuple[int, bytes | None, bytes | None, list[Any]]
PRODUCER = 777_000  # far from the ids that brokers give away


def append(broker: Broker, topic: str, data: bytes, version: int = 9) -> PartitionProduceResponse:
    """Produce one partition's bytes, whatever they are."""
    with Wire(broker.bootstrap) as connection:
        response = connection.ask(wire.produce(topic, data), ProduceResponse, version)
    return response.responses[0].partition_responses[0]


def end_offset(broker: Broker, topic: str) -> int:
    """The partition's high watermark."""
    with Wire(broker.bootstrap) as connection:
        answer = connection.ask(wire.fetch(topic, 0), FetchResponse, 11)
    return answer.responses[0].partitions[0].high_watermark


def records(count: int) -> list[Content]:
    """Plain records."""
    return [(START_MS + i, b"key", b"value %d" % i, []) for i in range(count)]


def mended(data: bytearray) -> bytes:
    """The batch with the checksum of what it holds now."""
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return bytes(data)


def patched(position: int, layout: str, value: int, *, count: int = 3) -> bytes:
    """A batch of `count` records with one header field changed and the checksum made right."""
    data = bytearray(build_batch(records(count)))
    struct.pack_into(layout, data, position, value)
    return mended(data)


def broken_crc() -> bytes:
    """One bit of a value flipped on the way."""
    data = bytearray(build_batch(records(3)))
    data[-3] ^= 1
    return bytes(data)


def cut_inside_compression() -> bytes:
    """A gzip batch whose last record ends early."""
    plain = build_batch(records(3))
    data = bytearray(plain[: batch.HEADER_SIZE])
    data += compress(Codec.GZIP, plain[batch.HEADER_SIZE : -4], None)
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">h", data, 21, Codec.GZIP)
    return mended(data)


#: Where Apache meets an exception it did not foresee it says UNKNOWN_SERVER_ERROR.
CORRUPT: dict[str, Callable[[], bytes]] = {
    "checksum": broken_crc,
    "record cut inside compression": cut_inside_compression,
    "codec 5": lambda: patched(21, ">h", 5),
    "garbage for gzip": lambda: patched(21, ">h", Codec.GZIP),
}
INVALID: dict[str, Callable[[], bytes]] = {
    "cut short": lambda: build_batch(records(3))[:-5],
    "hardly more than a length": lambda: build_batch(records(3))[:40],
    "count below the records": lambda: patched(57, ">i", 2),
    "count above the records": lambda: patched(57, ">i", 4),
    "negative count": lambda: patched(57, ">i", -1),
    "last offset delta beyond the count": lambda: patched(23, ">i", 5),
    "control batch": lambda: patched(21, ">h", 0x20),
    "sequence missing": lambda: patched(43, ">q", PRODUCER),
}


@pytest.mark.parametrize("what", CORRUPT)
def test_corrupt_batch(broker: Broker, topic: str, what: str) -> None:
    """Bytes that cannot be what the producer meant are refused and not stored."""
    code = append(broker, topic, CORRUPT[what]()).error_code
    allowed = {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
    if KIND == "apache":
        allowed.add(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert code == ErrorCode.CORRUPT_MESSAGE if what == "checksum" else ErrorCode(code) in allowed
    assert end_offset(broker, topic) == 0


@pytest.mark.parametrize("what", INVALID)
def test_invalid_batch(broker: Broker, topic: str, what: str) -> None:
    """A right checksum around wrong contents is INVALID_RECORD and not stored."""
    assert append(broker, topic, INVALID[what]()).error_code == ErrorCode.INVALID_RECORD
    assert end_offset(broker, topic) == 0


def test_two_batches_in_one_request(broker: Broker, topic: str) -> None:
    """Since version 3 a partition gets one batch per request."""
    data = build_batch(records(2))
    assert append(broker, topic, data + data).error_code == ErrorCode.INVALID_RECORD


def test_nothing_to_append(broker: Broker, topic: str) -> None:
    """Neither an empty byte string nor null is a batch."""
    assert append(broker, topic, b"").error_code != 0
    assert end_offset(broker, topic) == 0


def test_old_format_in_a_new_request(broker: Broker, topic: str) -> None:
    """Version 3 and later carry format 2 only."""
    old = legacy.build_message_set([batch.Record(0, START_MS, None, b"old")], magic=1)
    assert append(broker, topic, old).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("magic", "version"), [(0, 0), (0, 1), (1, 2)])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_old_format_in_an_old_request(
    broker: Broker, topic: str, magic: int, version: int, codec: Codec
) -> None:
    """Message sets of clients before 0.11 are taken and come back as format 2."""
    stamp = START_MS if magic else -1
    sent = [batch.Record(i, stamp, b"k%d" % i, b"v%d" % i) for i in range(5)]
    data = legacy.build_message_set(sent, magic=magic, codec=codec)
    answer = append(broker, topic, data, version)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    with Wire(broker.bootstrap) as connection:
        fetched = connection.ask(wire.fetch(topic, 0), FetchResponse, 11)
        found = fetched.responses[0].partitions[0].records
        assert isinstance(found, (bytes, memoryview))
        seen = [record for at, _ in batch.headers(found) for record in batch.records(found, at)]
        assert [record[:4] for record in seen] == [record[:4] for record in sent]
        old = connection.ask(wire.fetch(topic, 0), FetchResponse, 1 if magic == 0 else 2)
        set_again = old.responses[0].partitions[0].records
        assert isinstance(set_again, (bytes, memoryview))
        assert [message[:4] for message in legacy.messages(set_again)] == [r[:4] for r in sent]


def test_zstd_in_a_request_before_zstd(broker: Broker, topic: str) -> None:
    """zstd needs version 7: before, nobody could be sure that readers know it."""
    data = build_batch(records(3), codec=Codec.ZSTD)
    assert append(broker, topic, data, 6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert append(broker, topic, data, 7).error_code == 0


def test_record_errors_name_the_record(broker: Broker, make_topic: MakeTopic) -> None:
    """Since version 8 the answer says which record of the batch was refused."""
    topic = make_topic({"cleanup.policy": "compact"})
    mixed: list[Content] = [(START_MS, key, b"v", []) for key in (b"a", None, b"b", None)]
    answer = append(broker, topic, build_batch(mixed), 8)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert answer.error_message


def test_unknown_partition(broker: Broker, topic: str) -> None:
    """A topic or partition nobody made is UNKNOWN_TOPIC_OR_PARTITION; produce makes none."""
    assert append(broker, "never-made", build_batch(records(1))).error_code == 3
    request = wire.produce(topic, build_batch(records(1)), partition=9)
    with Wire(broker.bootstrap) as connection:
        answer = connection.ask(request, ProduceResponse, 9).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def sequenced(sequence: int, *, epoch: int = 0, count: int = 1, producer: int = PRODUCER) -> bytes:
    """A batch of an idempotent producer."""
    return build_batch(
        records(count), producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


def test_duplicates_get_their_first_offsets(broker: Broker, topic: str) -> None:
    """Each of the last five batches may be sent again; older ones are DUPLICATE_SEQUENCE_NUMBER."""
    for sequence in range(0, 14, 2):
        answer = append(broker, topic, sequenced(sequence, count=2))
        assert (answer.error_code, answer.base_offset) == (0, sequence)
    for sequence in range(4, 14, 2):
        again = append(broker, topic, sequenced(sequence, count=2))
        assert (again.error_code, again.base_offset) == (0, sequence)
    for sequence in (0, 2):
        code = append(broker, topic, sequenced(sequence, count=2)).error_code
        assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(broker, topic) == 14


def test_sequences_without_gaps(broker: Broker, topic: str) -> None:
    """A gap is out of order; so is a batch that overlaps what was written."""
    assert append(broker, topic, sequenced(0, count=3)).error_code == 0
    for sequence in (4, 2, 1):
        code = append(broker, topic, sequenced(sequence, count=2)).error_code
        assert code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, sequence
    assert append(broker, topic, sequenced(3)).error_code == 0


def test_producer_epochs(broker: Broker, topic: str) -> None:
    """A new epoch starts over at 0; the old epoch is fenced from then on."""
    assert append(broker, topic, sequenced(0, epoch=4)).error_code == 0
    assert append(broker, topic, sequenced(1, epoch=5)).error_code == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert append(broker, topic, sequenced(0, epoch=5)).error_code == 0
    assert append(broker, topic, sequenced(1, epoch=4)).error_code == (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_unknown_producer_may_start_anywhere(broker: Broker, topic: str) -> None:
    """Its state may have been lost to retention: any first sequence is taken, then none skipped."""
    assert append(broker, topic, sequenced(500)).error_code == 0
    assert append(broker, topic, sequenced(502)).error_code == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_sequences_wrap(broker: Broker, topic: str) -> None:
    """After 2^31-1 comes 0, inside a batch too."""
    last = 2**31 - 1
    assert append(broker, topic, sequenced(last - 1, count=3)).error_code == 0
    assert append(broker, topic, sequenced(1)).error_code == 0
    again = append(broker, topic, sequenced(last - 1, count=3))
    assert (again.error_code, again.base_offset) == (0, 0)


def test_one_invalid_partition_does_not_fail_the_others(
    broker: Broker, make_topic: MakeTopic
) -> None:
    """Each partition of a request fails or succeeds for itself."""
    topic = make_topic(partitions=2)
    good = wire.produce(topic, build_batch(records(1)), partition=0).topic_data[0].partition_data
    bad = wire.produce(topic, broken_crc(), partition=1).topic_data[0].partition_data
    request: ProduceRequest = wire.produce(topic, b"")
    request.topic_data[0].partition_data = bad + good
    with Wire(broker.bootstrap) as connection:
        answers = connection.ask(request, ProduceResponse, 9).responses[0].partition_responses
    assert {answer.index: answer.error_code for answer in answers} == {
        0: 0,
        1: ErrorCode.CORRUPT_MESSAGE,
    }
