"""What may take long on a disk never runs in the event loop of a broker that serves."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log import files
from barnabas_broker.server.node.broker_server import clock_ms
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.members import Member, commit, find
from tests.broker.server.running import Wire, port_of, running_node

SLOW = frozenset({"fsync", "fdatasync", "unlink", "rmdir"})
"""Calls that wait for a device, or for as long as a file is large."""


class Watched:
    """What `os` does, noting which slow calls which thread makes."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name not in SLOW:
            return call

        def noted(*arguments: Any) -> Any:
            self.made.append((threading.current_thread().name, name))
            return call(*arguments)

        return noted


@contextmanager
def watching() -> Iterator[Watched]:
    """Every data file is handled through what this yields."""
    before, watched = files.system, Watched()
    files.system = watched
    try:
        yield watched
    finally:
        files.system = before


def batch(size: int = 100) -> bytes:
    return build_batch([(clock_ms(), b"key", b"." * size, ())])


@pytest.mark.parametrize("durability", ["replicated", "fsync"])
def test_the_loop_waits_for_no_disk(tmp_path: Path, durability: str) -> None:
    """Topics come and go, segments roll, are retained, flushed and deleted, groups commit."""
    settings = {
        "barnabas.durability": durability,
        "log.segment.delete.delay.ms": "0",
        "log.flush.offset.checkpoint.interval.ms": "20",
        "log.retention.check.interval.ms": "20",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
    }
    with (
        watching() as watched,
        running_node(tmp_path, settings) as node,
        Wire(port_of(node)) as wire,
    ):
        watched.made.clear()
        wire.create_topic("t", segment_bytes="300", retention_bytes="600", flush_messages="2")
        for _ in range(20):
            assert wire.produce("t", batch()).error_code == 0
        entry = DeleteRecordsPartition(partition_index=0, offset=15)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="t", partitions=[entry])], timeout_ms=5000
        )
        assert wire.ask(request, 2).topics[0].partitions[0].error_code == 0
        find(wire, "g")
        member = Member(wire, "g")
        member.enter()
        member.sync({member.id: b"mine"})
        code = commit(wire, "g", "t", 3, generation=member.generation, member=member.id)
        assert code == 0
        while ("background_0", "unlink") not in watched.made:
            assert wire.produce("t", batch()).error_code == 0
        wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
        while list(tmp_path.glob("t-0*")):
            assert member.beat() == 0
        seen = list(watched.made)
    assert {name for _, name in seen} >= {"fsync", "unlink", "rmdir"}  # Others did it all.
    assert [call for thread, call in seen if thread == "broker under test"] == []


def test_requests_are_served_while_logs_are_created(tmp_path: Path) -> None:
    """A topic of thousands of partitions takes seconds, and heartbeats wait for none of it."""
    partitions, made = 400, set[int]()
    with (
        running_node(tmp_path) as node,
        Wire(port_of(node)) as creating,
        Wire(port_of(node)) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        created = threads.submit(creating.create_topic, "wide", partitions=partitions)
        while not created.done():
            other.ask(ApiVersionsRequest(), 2)
            made.add(len(node.broker.replicas))
        created.result()
        assert len(node.broker.replicas) == partitions
    assert made - {0, partitions}, "no request was answered between the first log and the last"
