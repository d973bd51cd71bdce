"""What several brokers share, as a process: found again, started again where it was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from barnabas_operator.local import coordination, zookeeper
from barnabas_operator.local.processes import Entry
from barnabas_operator.local.state import LocalError, Record, StateDirectory
from barnabas_operator.local.zookeeper import ZooKeeperFiles
from tests.waiting import START, seconds, wait_for


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """A state directory of which nothing runs after the test."""
    state = StateDirectory(tmp_path / "state")
    yield state
    zookeeper.end(ZooKeeperFiles(state.zookeeper), timeout_s=seconds(START))


def ensure(record: Record, state: StateDirectory) -> list[str]:
    """Have it run; returns what was said."""
    said: list[str] = []
    zookeeper.ensure(record, state, say=said.append, deadline=seconds(START) + time.monotonic())
    return said


def entry(state: StateDirectory) -> Entry:
    """The process."""
    found = ZooKeeperFiles(state.zookeeper).entry()
    assert found is not None
    return found


def test_it_is_started_once_and_again_after_a_crash(state: StateDirectory) -> None:
    """On the port it had, with the znodes it had."""
    record = Record(cluster="quickstart", file="f")
    assert coordination.connect(record) is None
    (said,) = ensure(record, state)
    assert said.startswith(f"ZooKeeper serves 127.0.0.1:{record.zookeeper}: one process")
    connect = coordination.connect(record)
    assert connect == f"127.0.0.1:{record.zookeeper}/quickstart"
    client = KazooClient(connect.removesuffix("/quickstart"))
    client.start(seconds(START))
    client.create("/quickstart", b"x")
    client.stop()
    client.close()
    assert ensure(record, state) == []
    first = entry(state)
    os.kill(first.pid, signal.SIGKILL)
    wait_for("the end of the ZooKeeper", lambda: first.running, until=lambda it: not it)
    said, port = ensure(record, state)[0], record.zookeeper
    assert "had ended without a request to stop" in said
    assert coordination.connect(record) == connect
    assert zookeeper.end(ZooKeeperFiles(state.zookeeper), timeout_s=seconds(START))
    assert not zookeeper.end(ZooKeeperFiles(state.zookeeper), timeout_s=seconds(START))
    assert record.zookeeper == port


def test_it_says_why_it_does_not_start(state: StateDirectory) -> None:
    """Its own words, and nothing is left running."""
    state.zookeeper.mkdir(parents=True)
    state.zookeeper.joinpath("data").touch()
    with pytest.raises(LocalError, match=r"the ZooKeeper cannot start: .*data.* is a file"):
        ensure(Record(cluster="quickstart", file="f"), state)
    assert ZooKeeperFiles(state.zookeeper).entry() is None
