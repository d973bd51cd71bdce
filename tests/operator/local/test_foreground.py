"""`barnabas local up --foreground` as a person starts and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas_operator.local.zookeeper import ZooKeeperFiles
from tests.operator.local.laptop import Laptop, cluster
from tests.operator.local.terminal import COMMAND, Terminal
from tests.oracle.apache import free_port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_until_it_is_told_to_stop(
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


@contextmanager
def _in_the_foreground(laptop: Laptop, terminal: Terminal) -> Iterator[subprocess.Popen[str]]:
    """`up --foreground` once it watches; read to its end."""
    process = subprocess.Popen(
        [*COMMAND, "up", str(laptop.file), "--foreground"],
        env=terminal.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert process.stdout is not None
        told: list[str] = []
        for line in process.stdout:
            told.append(line)
            if "Ctrl-C stops it" in line:
                break
        else:
            raise AssertionError("".join(told))
        yield process
        process.stdout.read()
