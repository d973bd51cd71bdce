"""`barnabas local up` that is interrupted before everything is Ready.

The command stands still where its output goes to a pipe that is full.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas_operator.local.broker import BrokerFiles
from barnabas_operator.local.state import BusyError, StateDirectory
from tests.operator.local.laptop import Laptop, cluster, topic
from tests.operator.local.terminal import COMMAND, Terminal
from tests.waiting import wait_for


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_of_a_new_cluster(
    laptop: Laptop, terminal: Terminal, number: signal.Signals
) -> None:
    """Its broker ends, its directory is removed, and the shell learns which signal it was."""
    laptop.write(cluster(), topic())
    state = StateDirectory(terminal.directory / "quickstart")
    files = BrokerFiles(state.broker(0))
    with _blocked(laptop.file, terminal) as process:
        entry = wait_for("a broker process", files.entry, until=lambda it: it is not None)
        process.send_signal(number)
        said = process.communicate()[0]
    assert process.returncode == -number
    assert "interrupted: stopping what was started" in said
    assert "Aborted" not in said
    assert entry is not None
    assert not entry.running
    assert not state.path.exists()


def test_data_of_a_stopped_cluster_stay(laptop: Laptop, terminal: Terminal) -> None:
    """Of a cluster that was stopped: it is stopped again, and no more."""
    laptop.write(cluster(), topic())
    terminal.run("up", laptop.file)
    terminal.run("down")
    state = StateDirectory(terminal.directory / "quickstart")
    files = BrokerFiles(state.broker(0))
    with _blocked(laptop.file, terminal) as process:
        wait_for("a broker process", files.entry, until=lambda it: it is not None)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == -signal.SIGINT
    assert files.entry() is None
    terminal.run("up", laptop.file)
    assert "packages" in terminal.command("topics", "list", "--local", "quickstart")


def test_a_broker_that_had_ended_by_itself_does_not_count_as_running(
    laptop: Laptop, terminal: Terminal
) -> None:
    """As after the machine was switched off: what was started is stopped, and the data stay."""
    laptop.write(cluster(), topic())
    terminal.run("up", laptop.file)
    files = BrokerFiles(StateDirectory(terminal.directory / "quickstart").broker(0))
    ended = files.entry()
    assert ended is not None
    os.kill(ended.pid, signal.SIGKILL)
    wait_for("the end of the broker", lambda: ended.running, until=lambda it: not it)
    state = StateDirectory(terminal.directory / "quickstart")
    with _blocked(laptop.file, terminal) as process:
        wait_for("a command at work", lambda: _held(state), until=bool)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]
    assert "interrupted: stopping what was started" in said
    assert files.entry() is None
    assert files.directory.exists()


def test_a_cluster_that_ran_before_still_runs(laptop: Laptop, terminal: Terminal) -> None:
    """It serves clients; the same command completes the change."""
    document = cluster()
    laptop.write(document)
    terminal.run("up", laptop.file)
    (before,) = terminal.status()
    state = StateDirectory(terminal.directory / "quickstart")
    laptop.write(document, topic())
    with _blocked(laptop.file, terminal) as process:
        wait_for("a command at work", lambda: _held(state), until=bool)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]
    assert process.returncode == -signal.SIGINT
    assert "interrupted: what ran before still runs" in said
    terminal.run("up", laptop.file)
    (after,) = terminal.status()
    assert after["brokers"][0]["pid"] == before["brokers"][0]["pid"]


@contextmanager
def _blocked(file: Path, terminal: Terminal) -> Iterator[subprocess.Popen[str]]:
    """`up`, which cannot print a line until it is read."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writing, b"\n" * size)
    os.set_blocking(writing, True)
    process = subprocess.Popen(
        [*COMMAND, "up", str(file)], env=terminal.environment, text=True,
        stdout=writing, stderr=subprocess.STDOUT,
    )  # fmt: skip
    os.close(writing)
    process.stdout = os.fdopen(reading)
    with process:
        yield process


def _held(state: StateDirectory) -> bool:
    try:
        with state.held():
            return False
    except BusyError:
        return True
