"""`barnabas local up --foreground` as a person starts and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from barnabas_operator.local import command
from barnabas_operator.local.zookeeper import ZooKeeperFiles
from tests.operator.local.laptop import Laptop, cluster
from tests.operator.local.terminal import COMMAND, Terminal
from tests.oracle.apache import free_port
from tests.waiting import START, wait_for


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_in_the_foreground_until_stopped(
    laptop: Laptop, terminal: Terminal, number: signal.Signals
) -> None:
    """The broker ends with it, cleanly; the data stay."""
    laptop.write(cluster())
    with _in_the_foreground(laptop, terminal) as process:
        (seen,) = terminal.status()
        process.send_signal(number)
        assert process.stdout is not None
        assert "the broker is stopped" in process.stdout.read()
    assert process.returncode == 0
    port = int(seen["status"]["listeners"][0]["bootstrapServers"].rpartition(":")[2])
    with socket.socket() as attempt:
        assert attempt.connect_ex(("127.0.0.1", port)) != 0


def test_in_the_foreground_a_broker_that_ends_is_noticed(
    laptop: Laptop, terminal: Terminal
) -> None:
    """Stopped by another command it is no failure; killed it is."""
    laptop.write(cluster())
    with _in_the_foreground(laptop, terminal) as process:
        terminal.run("down")
    assert process.returncode == 0
    with _in_the_foreground(laptop, terminal) as process:
        os.kill(terminal.status()[0]["brokers"][0]["pid"], signal.SIGKILL)
    assert process.returncode == 1


def test_in_the_foreground_a_zookeeper_that_ends_is_noticed(
    laptop: Laptop, terminal: Terminal
) -> None:
    """It is told by name, and the brokers are stopped: without it nobody would be elected."""
    listeners = [{"name": "plain", "type": "internal", "port": free_port(2)}]
    laptop.write(cluster(brokers={"replicas": 2, "storage": {"size": "1Gi"}}, listeners=listeners))
    with _in_the_foreground(laptop, terminal) as process:
        entry = ZooKeeperFiles(terminal.directory / "quickstart" / "zookeeper").entry()
        assert entry is not None
        os.kill(entry.pid, signal.SIGKILL)
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 1, said
    assert "Error: the ZooKeeper ended by itself; its last words: " in said, said
    (seen,) = terminal.status()
    assert [each["running"] for each in seen["brokers"]] == [False, False]


def test_in_the_foreground_what_ends_is_started_again(laptop: Laptop, terminal: Terminal) -> None:
    """With --restart, on the same port; Ctrl-C still ends it."""
    laptop.write(cluster())
    with _in_the_foreground(laptop, terminal, "--restart") as process:
        (before,) = terminal.status()
        os.kill(before["brokers"][0]["pid"], signal.SIGKILL)
        (after,) = wait_for(
            "another broker process",
            terminal.status,
            until=lambda seen: (
                seen[0]["ready"] and seen[0]["brokers"][0]["pid"] != before["brokers"][0]["pid"]
            ),
            within=START,
        )
        assert after["status"]["listeners"] == before["status"]["listeners"]
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert "starting it again" in process.stdout.read()
    assert process.returncode == 0
    printed = terminal.run("up", laptop.file, "--restart", code=2)
    assert "--restart goes with --foreground" in printed


def test_restarts_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five times in five minutes, and once more when these are over."""
    now_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now_s[0])
    monkeypatch.setattr(command, "time", clock)
    started: list[float] = []
    restarts = command.Restarts(lambda: started.append(now_s[0]))
    for _ in range(command.RESTARTS_MAX):
        assert restarts.allowed()
        restarts.start_again()
    assert not restarts.allowed()
    now_s[0] = command.RESTARTS_WITHIN_S + 1
    assert restarts.allowed()
    assert len(started) == command.RESTARTS_MAX


@contextmanager
def _in_the_foreground(
    laptop: Laptop, terminal: Terminal, *options: str
) -> Iterator[subprocess.Popen[str]]:
    """`up --foreground` once it watches; read to its end."""
    process = subprocess.Popen(
        [*COMMAND, "up", str(laptop.file), "--foreground", *options],
        env=terminal.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert process.stdout is not None
        printed: list[str] = []
        for line in process.stdout:
            printed.append(line)
            if "Ctrl-C stops it" in line:
                break
        else:
            raise AssertionError("".join(printed))
        yield process
        process.stdout.read()
