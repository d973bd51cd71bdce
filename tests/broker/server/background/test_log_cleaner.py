"""Compaction in a running broker: processes, swaps, settings and trouble."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log.cleaner.manager import CleanerManager, Resources
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.server.background.log_cleaner import LogCleaner
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.batch import headers, records
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, port_of, running_node
from tests.broker.server.test_dynamic_settings import alter
from tests.waiting import wait_for

EAGER = {"log.cleaner.backoff.ms": "100", "log.cleaner.io.buffer.size": "200000"}
COMPACTED: dict[str, Any] = {
    "cleanup_policy": "compact",
    "segment_bytes": "2000",
    "min_cleanable_dirty_ratio": "0",
    "file_delete_delay_ms": "0",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerServer]:
    with running_node(tmp_path / "data", EAGER) as running:
        yield running


@pytest.fixture
def wire(node: BrokerServer) -> Iterator[Wire]:
    with Wire(port_of(node)) as connected:
        yield connected


def fill(wire: Wire, topic: str, *, first: int = 0, count: int = 200) -> None:
    for number in range(first, first + count):
        data = build_batch([(1, b"k%d" % (number % 7), b"v%d" % number, ())])
        assert wire.produce(topic, data).error_code == 0


def log_of(node: BrokerServer, topic: str) -> PartitionLog:
    return node.broker.logs.logs[TopicPartition(topic, 0)]


def cleaner_of(node: BrokerServer) -> LogCleaner:
    assert node.cleaner is not None
    return node.cleaner


def wait_until_clean(node: BrokerServer, topic: str) -> None:
    """Until everything below the active segment is clean."""
    log = log_of(node, topic)
    wait_for(
        f"{topic} cleaned up to its active segment",
        lambda: (log.cleaned_to, log.active.base_offset),
        until=lambda seen: seen[0] == seen[1],
    )


def values(wire: Wire, topic: str) -> dict[bytes | None, bytes | None]:
    """The last value of every key, as a consumer sees them."""
    found: dict[bytes | None, bytes | None] = {}
    offset = 0
    while data := bytes(wire.fetch(topic, offset).records or b""):  # type: ignore[arg-type]
        for position, header in headers(data, allow_partial=True):
            for record in records(data, position):
                found[record.key] = record.value
            offset = header.next_offset
    return found


def test_a_topic_is_compacted_while_it_is_written(node: BrokerServer, wire: Wire) -> None:
    """Records go on coming, and at the end each key has its last value."""
    wire.create_topic("states", **COMPACTED)
    fill(wire, "states")
    wait_until_clean(node, "states")
    fill(wire, "states", first=200)
    wait_until_clean(node, "states")
    found = values(wire, "states")
    assert found == {b"k%d" % (n % 7): b"v%d" % n for n in range(393, 400)}
    log = log_of(node, "states")
    assert log.size < 6000
    assert not list(log.directory.glob("*.cleaned"))
    assert not list(log.directory.glob("*.swap"))
    stats = cleaner_of(node).manager.stats
    assert stats.cleanings >= 2
    assert stats.bytes_kept < stats.bytes_read


def test_several_passes_where_memory_is_short(tmp_path: Path) -> None:
    """The setting bounds the keys of a pass, and the next pass goes on behind it."""
    settings = {**EAGER, "log.cleaner.dedupe.buffer.size": "1100000"}
    with running_node(tmp_path / "data", settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("many", **{**COMPACTED, "segment_bytes": "2000000"})
        for first in range(0, 100_000, 5000):
            pairs = [(1, b"%d" % (n % 60_000), b"x" * 20, ()) for n in range(first, first + 5000)]
            assert wire.produce("many", build_batch(pairs)).error_code == 0
        wait_until_clean(node, "many")
        stats = cleaner_of(node).manager.stats
        assert stats.cleanings >= 2
        assert stats.max_buffer_utilization_percent <= 90


def test_no_cleaner(tmp_path: Path) -> None:
    """log.cleaner.enable=false: nothing is compacted, whatever the topic says."""
    with (
        running_node(tmp_path / "data", {**EAGER, "log.cleaner.enable": "false"}) as node,
        Wire(port_of(node)) as wire,
    ):
        wire.create_topic("states", **COMPACTED)
        fill(wire, "states")
        assert log_of(node, "states").cleaned_to is None
        assert cleaner_of(node).manager.stats.cleanings == 0


def test_a_damaged_log_is_left_alone(node: BrokerServer, wire: Wire) -> None:
    """It is named with the reason; the other topics are cleaned."""
    wire.create_topic("damaged", **{**COMPACTED, "min_compaction_lag_ms": "100000000"})
    fill(wire, "damaged")
    log = log_of(node, "damaged")
    path = log.segments[0].file.path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    size = log.size
    log.config = type(log.config)(compact=True, min_cleanable_ratio=0.0, segment_bytes=2000)
    wire.create_topic("sound", **COMPACTED)
    fill(wire, "sound")
    wait_until_clean(node, "sound")
    manager = cleaner_of(node).manager
    wait_for("an uncleanable log", lambda: manager.uncleanable)
    assert "CRC" in manager.uncleanable[log.tp]
    assert manager.uncleanable_bytes(0) > 0
    assert log.size == size


def test_a_stop_does_not_wait_for_the_pause_after_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A cleaning that has failed is tried again after log.cleaner.backoff.ms: an hour here."""

    def failures() -> int:
        return caplog.text.count("Cleaning aborted")

    with (
        caplog.at_level(logging.INFO, CleanerManager.__module__),
        running_node(tmp_path / "data", EAGER) as node,
        Wire(port_of(node)) as wire,
    ):
        wire.create_topic("gone", **{**COMPACTED, "min_compaction_lag_ms": "100000000"})
        fill(wire, "gone")
        log = log_of(node, "gone")
        log.segments[0].file.path.unlink()
        log.config = type(log.config)(compact=True, min_cleanable_ratio=0.0, segment_bytes=2000)
        before = failures()
        assert alter(wire, "log.cleaner.backoff.ms", "3600000") == 0
        wait_for("a failure of the cleaner", failures, until=lambda count: count != before)


def test_the_next_cleaning_goes_by_changed_settings(node: BrokerServer, wire: Wire) -> None:
    """Memory and rate are shared out among the cleanings that may run at once."""
    cleaner = cleaner_of(node)
    for name, value in {
        "log.cleaner.threads": "2",
        "log.cleaner.dedupe.buffer.size": "8000000",
        "log.cleaner.io.buffer.load.factor": "0.5",
        "log.cleaner.io.buffer.size": "300000",
        "log.cleaner.io.max.bytes.per.second": "1000",
        "log.cleaner.backoff.ms": "5000",
    }.items():
        assert alter(wire, name, value) == 0
    assert cleaner.resources == Resources(
        map_bytes=4_000_000, map_load_factor=0.5, io_bytes=150_000, bytes_per_second=500.0
    )
    assert cleaner.pause_s == 5.0
