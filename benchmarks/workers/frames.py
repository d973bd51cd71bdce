"""Request frames built beforehand, and where to look in the fixed-size head of their responses.

Produce version 7 and Fetch version 11 are spoken by every broker of the last years, and have no
tagged fields: a Produce response is then of one size for a given request, and the head of a Fetch
response too, so a client can read them without decoding. All frames carry the same correlation id;
responses come in order, so it says nothing that the order does not.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.builder import build_batch

PRODUCE_VERSION: Final = 7
FETCH_VERSION: Final = 11
CLIENT_ID: Final = "benchmark"
CORRELATION_ID: Final = 7
# A batch's own header and, at most, the lengths and attributes round each of its values. What is
# asked for is never exceeded: a batch of 1 MiB just passes the default max.message.bytes.
BATCH_OVERHEAD: Final = 61
RECORD_OVERHEAD: Final = 12


@dataclass(frozen=True, slots=True)
class ProduceAnswer:
    """Size of a Produce response, length prefix included, and the places of its error codes."""

    size: int
    partitions: int
    first_error: int
    error_distance: int

    @property
    def error_end(self) -> int:
        """Where the last partition's part ends."""
        return self.first_error + self.partitions * self.error_distance - 4


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """Place of two error codes and of the records' length in a Fetch response's head."""

    head: int
    request_error: int
    partition_error: int
    records_length: int


def batch_of(target_bytes: int, record_bytes: int, *, now_ms: int) -> tuple[bytes, int]:
    """A batch of incompressible records of `record_bytes` each, as many as fit in `target_bytes`.

    Returns it with its number of records, at least one. The records are of `now_ms`: older ones
    would fall to the retention by time in the middle of a run.
    """
    count = max(1, (target_bytes - BATCH_OVERHEAD) // (record_bytes + RECORD_OVERHEAD))
    source = random.Random(count)  # the same bytes in every run
    records = [(now_ms, None, source.randbytes(record_bytes), ()) for i in range(count)]
    return build_batch(records), count


def produce_frame(topic: str, batches: Sequence[tuple[int, bytes]], *, acks: int) -> bytes:
    """One Produce request with a batch for each (partition, batch), length prefix included."""
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=index, records=batch) for index, batch in batches
                ],
            )
        ],
    )
    return framed(ApiKey.PRODUCE, PRODUCE_VERSION, encode(request, PRODUCE_VERSION))


def produce_answer(topic: str, partitions: int) -> ProduceAnswer:
    """What answers `produce_frame` for so many partitions of one topic."""
    # length, correlation id, topic count, name, partition count
    first = 4 + 4 + 4 + 2 + len(topic) + 4
    # index, error code, base offset, append time, log start offset
    each = 4 + 2 + 8 + 8 + 8
    size = first + partitions * each + 4  # throttle time
    return ProduceAnswer(size, partitions, first_error=first + 4, error_distance=each)


def api_versions_frame() -> bytes:
    """The request every client begins with, in its oldest form; any broker answers it."""
    body = encode(ApiVersionsRequest(), 0)
    return framed(ApiKey.API_VERSIONS, 0, body)


def fetch_frame(topic: str, *, partition: int, offset: int, max_bytes: int) -> bytes:
    """One Fetch request outside any session, that waits for nothing."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    return framed(ApiKey.FETCH, FETCH_VERSION, encode(request, FETCH_VERSION))


def fetch_answer(topic: str) -> FetchAnswer:
    """What answers `fetch_frame`, as long as it names no aborted transactions."""
    request_error = 4 + 4 + 4  # after length, correlation id, throttle time
    partition_error = request_error + 2 + 4 + 4 + 2 + len(topic) + 4 + 4
    # after error code, high watermark, stable offset, log start, no transactions, read replica
    records_length = partition_error + 2 + 8 + 8 + 8 + 4 + 4
    return FetchAnswer(records_length + 4, request_error, partition_error, records_length)


def framed(key: int, version: int, body: bytes) -> bytes:
    """A request as it goes out: length, header, body."""
    header = RequestHeader(
        api_key=key, api_version=version, correlation_id=CORRELATION_ID, client_id=CLIENT_ID
    )
    payload = bytes(encode_request_header(header)) + body
    return struct.pack(">i", len(payload)) + payload
