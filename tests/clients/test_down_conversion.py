"""What a client of before 0.11 costs a broker that stores format 2."""

from __future__ import annotations

import os
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.legacy import batch_positions, parse_message
from tests.clients import wire
from tests.clients.brokers import broker_under_test
from tests.clients.wire import Wire
from tests.waiting import ANSWER, seconds

VALUE = os.urandom(1000)
BATCH = wire.some_batch(*[VALUE] * 900)
BATCHES = 60
GROWTH_MAX_MIB = 64
"""Three times what one response may convert, and what the allocator keeps."""


def test_a_large_fetch_takes_little_memory(tmp_path: Path) -> None:
    """55 MiB in one response would be read, converted and sent: the client gets them in parts."""
    with (
        broker_under_test(tmp_path, {"broker.id": "0"}) as broker,
        Wire(broker.bootstrap) as client,
    ):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 1)])["t"].result(seconds(ANSWER))
        for _ in range(BATCHES):
            answer = client.ask(wire.produce("t", BATCH), ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        before = peak_mib(broker.pid)
        offset = 0
        while offset < BATCHES * 900:
            response = client.ask(everything("t", offset), FetchResponse, 3)
            records = bytes(response.responses[0].partitions[0].records or b"")  # type: ignore[arg-type]
            for position, size, _ in batch_positions(records):
                message = parse_message(records, position, size)
                assert (message.offset, message.value) == (offset, VALUE)
                offset += 1
        assert peak_mib(broker.pid) - before < GROWTH_MAX_MIB


def everything(topic: str, offset: int) -> FetchRequest:
    """As much as fits into a response."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 30)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, topics=topics)


def peak_mib(pid: int) -> int:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10
