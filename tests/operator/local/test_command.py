"""The commands as a person gives them, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas_operator.local.zookeeper import ZooKeeperFiles
from tests.operator.local.laptop import Laptop, cluster, topic
from tests.oracle.apache import free_port

TIMEOUT_S = 300
COMMAND = (sys.executable, "-P", "-m", "barnabas_broker.cli", "local")


class Terminal:
    """Runs commands; their state is in a directory of the test."""

    def __init__(self, home: Path) -> None:
        self.environment = {**os.environ, "XDG_STATE_HOME": str(home)}
        self.directory = home / "barnabas"

    def run(self, *arguments: object, code: int = 0) -> str:
        """Run to the end; returns what it said on both streams."""
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def status(self, *arguments: object) -> list[dict[str, Any]]:
        """The clusters that `status` tells of."""
        told = json.loads(self.run("status", "--output", "json", *arguments))
        clusters: list[dict[str, Any]] = told["clusters"]
        return clusters


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal; clusters that a test leaves are stopped."""
    terminal = Terminal(tmp_path / "home")
    yield terminal
    for name in [path.name for path in terminal.directory.glob("*")]:
        terminal.run("down", "--name", name)


def test_up_status_down(laptop: Laptop, terminal: Terminal) -> None:
    """The three of them, in tables and for programs."""
    laptop.write(cluster(), topic())
    out = terminal.run("up", laptop.file)
    assert "quickstart: topic packages: create with 3 partitions of 1 replicas" in out
    assert f"quickstart: Ready; its files are in {terminal.directory / 'quickstart'}" in out
    assert "spec.zookeeper, storage and resources are for Kubernetes" in out

    (seen,) = terminal.status()
    assert seen == terminal.status(laptop.file)[0] | {"brokers": seen["brokers"]}
    assert seen["ready"] is True
    (broker,) = seen["brokers"]
    assert broker["running"]
    assert broker["memoryBytes"] > 1 << 20
    address = seen["status"]["listeners"][0]["bootstrapServers"]
    table = terminal.run("status", "--name", "quickstart")
    for word in (address, str(broker["pid"]), "packages", "Warning: spec.zookeeper"):
        assert word in table

    assert "the broker is stopped" in terminal.run("down")
    table = terminal.run("status")
    assert "Ready: the broker is stopped; `barnabas local up` starts it" in table
    assert "is deleted" in terminal.run("down", laptop.file, "--delete-data")
    assert terminal.status() == []
    assert "No cluster is known here" in terminal.run("status")
    assert "No cluster is known here" in terminal.run("down")
    assert "Nothing is known of a cluster in" in terminal.run("down", laptop.file)


def test_something_that_is_not_ready_is_a_failure(laptop: Laptop, terminal: Terminal) -> None:
    """Exit code 1, and the reason on a line."""
    laptop.write(cluster(), topic(replicas=2))
    out = terminal.run("up", laptop.file, code=1)
    assert "KafkaTopic packages is not Ready: Refused: " in out


def test_a_file_with_mistakes_starts_nothing(laptop: Laptop, terminal: Terminal) -> None:
    """Exit code 2, and all of them at once."""
    laptop.write(cluster(), topic(partitions=0), topic("files", colour="red"))
    out = terminal.run("up", laptop.file, code=2)
    assert f"Error: {laptop.file}: KafkaTopic packages: spec.partitions: is 0" in out
    assert "KafkaTopic files: spec.colour: is no field" in out
    assert not terminal.directory.exists()


def test_which_cluster_is_meant(laptop: Laptop, terminal: Terminal, tmp_path: Path) -> None:
    """By name, by directory, or the only one."""
    laptop.write(cluster())
    for name in ("one", "two"):
        document = cluster()
        document["metadata"]["name"] = name
        laptop.write(document)
        terminal.run("up", laptop.file)
    assert [each["name"] for each in terminal.status()] == ["one", "two"]
    assert "several clusters (one, two): choose with --name" in terminal.run("down", code=2)
    assert "no cluster three is known here; there is one, two" in terminal.run(
        "status", "--name", "three", code=2
    )
    terminal.run("down", "--name", "one", "--delete-data")
    assert [each["name"] for each in terminal.status()] == ["two"]
    place = terminal.directory / "two"
    assert [each["name"] for each in terminal.status("--dir", place)] == ["two"]
    assert "thesis.tex" in _in_a_strange_place(terminal, laptop.file, tmp_path / "mine")


def _in_a_strange_place(terminal: Terminal, file: Path, directory: Path) -> str:
    directory.mkdir()
    directory.joinpath("thesis.tex").touch()
    return terminal.run("up", file, "--dir", directory, code=1)


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


def test_the_overview_is_quick(terminal: Terminal) -> None:
    """Nothing that needs a client is imported for it."""
    code = "import sys, barnabas_operator.local.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"confluent_kafka", "kubernetes", "jinja2", "rich", "yaml"}
    assert "Run custom resources on this machine" in terminal.run("--help")
