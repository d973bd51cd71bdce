"""Compaction with more keys than its table holds, in a control group with little memory."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas_kafka.records.batch import headers
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import read_all
from tests.waiting import ANSWER, SETTLE, seconds, wait_for

LIMIT_BYTES: Final = 72 << 20
KEYS: Final = 120_000
"""Twice as many as a table of the size below holds."""

SETTINGS: Final = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "1600000",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.bytes": "2000000",
    "log.segment.delete.delay.ms": "100",
}


class MemoryGroup:
    """A control group of the machine, of either version."""

    def __init__(self, name: str) -> None:
        first = Path("/sys/fs/cgroup/memory")
        self._old = first.is_dir()
        self.path = (first if self._old else Path("/sys/fs/cgroup")) / name

    def make(self, limit_bytes: int) -> None:
        """Make it, with that limit for everything in it, pages of files included."""
        self.path.mkdir()
        limit = "memory.limit_in_bytes" if self._old else "memory.max"
        (self.path / limit).write_text(str(limit_bytes))

    def take(self, pid: int) -> None:
        """Put a process in; those that it starts from now on are in, too."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Remove it, once the last of its processes is gone."""

        def error() -> int | None:
            try:
                self.path.rmdir()
            except OSError as raised:
                return raised.errno
            return None

        left = wait_for("the error of rmdir", error, until=lambda code: code != errno.EBUSY)
        assert left is None, os.strerror(left)

    @property
    def killed(self) -> int:
        """Processes that the kernel ended for want of memory."""
        events = self.path / ("memory.oom_control" if self._old else "memory.events")
        lines = (line.split() for line in events.read_text().splitlines())
        return sum(int(count) for name, count in lines if name == "oom_kill")


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    """A group with little memory, gone when the broker in it is."""
    made = MemoryGroup(f"barnabas-test-{os.getpid()}")
    made.make(LIMIT_BYTES)
    yield made
    made.remove()


def test_many_keys_are_compacted_in_little_memory(tmp_path: Path, group: MemoryGroup) -> None:
    """Of each key the last value is left, and nobody had to be killed for memory."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        group.take(broker.pid)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        new = NewTopic("states", 1, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([new])["states"].result(seconds(ANSWER))
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "linger.ms": 20,
                "queue.buffering.max.messages": 4 * KEYS,
            }
        )
        for generation in (b"old", b"new"):
            for number in range(KEYS):
                producer.produce("states", generation + b" value" * 4, b"%d" % number)
                producer.poll(0)
        for _ in range(3):  # So that all of it is below the active segment.
            producer.produce("states", os.urandom(900_000), b"filler")
            assert producer.flush(seconds(SETTLE)) == 0
        wait_for(
            "the records in the segments",
            lambda: stored_records(broker),
            until=lambda count: count <= KEYS + 100,
            retry=(FileNotFoundError,),  # Compaction replaces files meanwhile.
        )
        found: list[Message] = []

        def read() -> int:
            found[:] = read_all(broker.bootstrap, "states")
            return len(found)

        wait_for("the records that are read", read, until=lambda count: count <= KEYS + 100)
        values = {it.key(): it.value() for it in found if it.key() != b"filler"}
        assert len(values) == KEYS
        assert set(values.values()) == {b"new" + b" value" * 4}
        assert broker.exit_code is None
        assert group.killed == 0


def stored_records(broker: Barnabas) -> int:
    """How many records the batches of all segments hold, as their headers say."""
    (log_dir,) = broker.log_dirs
    return sum(
        header.record_count
        for segment in (log_dir / "states-0").glob("*.log")
        for _, header in headers(segment.read_bytes(), allow_partial=True)
    )
