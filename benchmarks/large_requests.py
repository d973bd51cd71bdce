"""Requests that name a hundred thousand things, and how long others wait for each."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from barnabas_kafka.protocol.schema import Message

THINGS: Final = 100_000
ANSWERED_WITHIN_S: Final = 120.0
PACE_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class LargeRow:
    """One large request: how long it took, and the longest wait of another client meanwhile."""

    name: str
    answered_ms: float
    largest_wait_ms: float


def large_requests(topic: str) -> Iterator[tuple[Message, int]]:
    """One of each kind, with its version; most things named do not exist."""
    names = [f"nothing-{number}" for number in range(THINGS)]
    latest = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(THINGS)]
    commit = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    yield (
        MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        ),
        4,
    )
    yield (
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=latest)]),
        5,
    )
    yield (
        OffsetCommitRequest(
            group_id="group",
            topics=[OffsetCommitRequestTopic(name=name, partitions=[commit]) for name in names],
        ),
        7,
    )
    yield (
        OffsetFetchRequest(
            group_id="group",
            topics=[OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names],
        ),
        5,
    )
    yield (
        FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_epoch=-1,
            topics=[FetchTopic(topic=name, partitions=[wanted]) for name in names],
        ),
        11,
    )
    yield (
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=2, resource_name=topic)
                for _ in range(THINGS // 20)
            ]
        ),
        1,
    )
    yield (
        CreateTopicsRequest(
            timeout_ms=60_000,
            validate_only=True,
            topics=[
                CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in names[: THINGS // 20]
            ],
        ),
        5,
    )
    yield DeleteTopicsRequest(timeout_ms=60_000, topic_names=names), 4
    yield DescribeGroupsRequest(groups=names), 1


def large_rows(port: int, topic: str, sing: Callable[[], float]) -> Iterator[LargeRow]:
    """Send each large request on a connection of its own while the canary sings."""
    for request, version in large_requests(topic):
        header = RequestHeader(request.api_key, version, 1, "large")
        body = encode_request_header(header) + codec.encode(request, version)
        name = type(request).__name__.removesuffix("Request")
        yield _row(name, len(body).to_bytes(4, "big") + body, port, sing)


def _row(name: str, frame: bytes, port: int, sing: Callable[[], float]) -> LargeRow:
    took = [float("nan")]

    def ask() -> None:
        began = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWERED_WITHIN_S) as sock:
            sock.sendall(frame)
            received = sock.recv(4, socket.MSG_WAITALL)
            left = int.from_bytes(received, "big")
            while left and received:
                received = sock.recv(min(left, 1 << 20))
                left -= len(received)
            if not left:
                took[0] = (time.perf_counter() - began) * 1000

    thread = threading.Thread(target=ask)
    thread.start()
    waits = [sing() * 1000]
    while thread.is_alive():
        waits.append(sing() * 1000)
        time.sleep(PACE_S)
    return LargeRow(name, took[0], max(waits))


def large_table(rows: Sequence[LargeRow]) -> str:
    """The rows as Markdown."""
    lines = [
        "| Request | Answered after ms | Longest wait of the canary ms |",
        "|---|---|---|",
    ]
    lines += [f"| {row.name} | {row.answered_ms:.0f} | {row.largest_wait_ms:.1f} |" for row in rows]
    return "\n".join([*lines, ""])
