"""Frames of the raw client, and the places it looks at, agree with the declarations."""

from __future__ import annotations

import struct

import pytest

from barnabas_kafka.protocol.codec import decode, encode
from barnabas_kafka.protocol.headers import decode_request_header
from barnabas_kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas_kafka.records.batch import parse_header, verify_crc
from benchmarks.workers import frames


def framed(body: bytes) -> bytes:
    """A response as it comes from the socket."""
    return struct.pack(">ii", len(body) + 4, frames.CORRELATION_ID) + body


@pytest.mark.parametrize(
    ("target", "record"), [(270, 200), (16 << 10, 1024), (64 << 10, 1024), (1 << 20, 1024)]
)
def test_batch_fits_in_what_was_asked_for_and_is_sound(target: int, record: int) -> None:
    """A batch meant for a limit is not larger than it, and nearly fills it when it holds many."""
    batch, count = frames.batch_of(target, record, now_ms=1_800_000_000_000)
    header = parse_header(batch)
    verify_crc(batch, 0, header)
    assert header.record_count == count
    assert len(batch) == header.size <= target
    assert count == 1 or len(batch) > target - 2 * (record + frames.RECORD_OVERHEAD) - count * 8


def test_produce_frame_carries_a_batch_for_each_partition() -> None:
    """The length prefix, the header and the body agree with the declarations."""
    frame = frames.produce_frame("some", [(3, b"three"), (7, b"seven")], acks=1)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    header, position = decode_request_header(frame, 4)
    request = decode(ProduceRequest, frame[position:], header.api_version)
    assert request.acks == 1
    partitions = request.topic_data[0].partition_data
    assert [(part.index, bytes(part.records or b"")) for part in partitions] == [
        (3, b"three"),
        (7, b"seven"),
    ]


@pytest.mark.parametrize("partitions", [1, 50])
def test_produce_answer_finds_every_error_code(partitions: int) -> None:
    """Size and places hold for a response as declared, whichever partition fails."""
    answer = frames.produce_answer("some", partitions)
    for failing in range(partitions):
        parts = [
            PartitionProduceResponse(index=i, error_code=-1 if i == failing else 0)
            for i in range(partitions)
        ]
        topic = TopicProduceResponse(name="some", partition_responses=parts)
        response = framed(encode(ProduceResponse(responses=[topic]), frames.PRODUCE_VERSION))
        assert len(response) == answer.size
        codes = [
            struct.unpack_from(">h", response, place)[0]
            for place in range(answer.first_error, answer.error_end, answer.error_distance)
        ]
        assert codes == [-1 if i == failing else 0 for i in range(partitions)]


def test_fetch_answer_finds_errors_and_the_length_of_the_records() -> None:
    """The fixed head of a Fetch response is where the raw client looks."""
    partition = PartitionData(
        partition_index=0, error_code=1, aborted_transactions=[], records=b"x" * 77
    )
    topic = FetchableTopicResponse(topic="some", partitions=[partition])
    body = encode(FetchResponse(error_code=5, responses=[topic]), frames.FETCH_VERSION)
    response = framed(body)
    answer = frames.fetch_answer("some")
    assert answer.head + 77 == len(response)
    assert struct.unpack_from(">h", response, answer.request_error)[0] == 5
    assert struct.unpack_from(">h", response, answer.partition_error)[0] == 1
    assert struct.unpack_from(">i", response, answer.records_length)[0] == 77


def test_fetch_frame_asks_for_one_partition_outside_a_session() -> None:
    """Offset and limits arrive, and the session epoch is the one that means none."""
    frame = frames.fetch_frame("some", partition=2, offset=99, max_bytes=1 << 20)
    header, position = decode_request_header(frame, 4)
    request = decode(FetchRequest, frame[position:], header.api_version)
    assert request.session_epoch == -1
    assert request.max_bytes == 1 << 20
    wanted = request.topics[0].partitions[0]
    assert (wanted.partition, wanted.fetch_offset, wanted.partition_max_bytes) == (2, 99, 1 << 20)
