"""A ZooKeeper and a broker started and stopped by the scripts of Kafka's names, as people type it.

The jars are Apache's, found as in its distribution: in `libs` of `$KAFKA_HOME`. The properties are
those that Kafka ships, but for ports, directories, and how long ZooKeeper may take to begin: a
busy machine may need more than 18 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.oracle.apache import classpath, free_port
from tests.waiting import RUN, SETTLE, seconds, wait_for

pytestmark = pytest.mark.jvm

BIN = Path(sys.executable).parent
ZOOKEEPER = """\
dataDir={directory}/zookeeper
clientPort={port}
maxClientCnxns=0
admin.enableServer=false
"""
SERVER = """\
broker.id=0
listeners=PLAINTEXT://127.0.0.1:{port}
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={directory}/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:{zookeeper_port}
zookeeper.connection.timeout.ms=120000
group.initial.rebalance.delay.ms=0
"""


class Shell:
    """The directory in which somebody types, with `config` and Apache's jars."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self.zookeeper_port = free_port(), free_port()
        (directory / "libs").mkdir()
        for jar in map(Path, classpath().split(":")):
            (directory / "libs" / jar.name).symlink_to(jar)
        config = directory / "config"
        config.mkdir()
        (config / "zookeeper.properties").write_text(
            ZOOKEEPER.format(directory=directory, port=self.zookeeper_port)
        )
        (config / "server.properties").write_text(
            SERVER.format(directory=directory, port=self.port, zookeeper_port=self.zookeeper_port)
        )
        self.environment = {
            **os.environ,
            "KAFKA_HOME": str(directory),
            "LOG_DIR": str(directory / "logs"),
            "BARNABAS_RUN_DIR": str(directory / "run"),
        }

    def run(self, name: str, *args: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [BIN / name, *args], input=typed, env=self.environment, cwd=self.directory,
            capture_output=True, text=True, timeout=seconds(RUN), check=False,
        )  # fmt: skip

    def begin(self, name: str, *args: str) -> subprocess.Popen[bytes]:
        """Start a command that goes on in the foreground of another terminal."""
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [BIN / name, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, cwd=self.directory,
            )  # fmt: skip

    def carries_a_record(self) -> None:
        """Make a topic, write to it and read it."""
        where = ("--bootstrap-server", f"127.0.0.1:{self.port}", "--topic", "greetings")
        made = self.run("kafka-topics.sh", "--create", "--partitions", "1", *where)
        assert made.stdout == "Created topic greetings.\n", made.stderr
        assert self.run("kafka-console-producer.sh", *where, typed="hello\n").returncode == 0
        read = self.run(
            "kafka-console-consumer.sh", *where, "--from-beginning", "--max-messages", "1"
        )
        assert read.stdout == "hello\n", read.stderr

    def stopped(self, script: str) -> bool:
        """Run a stop script: whether it finds nothing to stop."""
        return self.run(script).returncode != 0

    def stop_all(self) -> None:
        """Stop what runs, the broker first, and see it end."""
        for name in ("kafka-server-stop.sh", "zookeeper-server-stop.sh"):
            wait_for(f"nothing to stop by {name}", partial(self.stopped, name), within=RUN)


def ready(log: Path, times: int, broker: subprocess.Popen[bytes]) -> bool:
    """Whether a broker has said so many times that it serves; not if it has ended instead."""
    if broker.poll() is not None:
        pytest.fail(f"the broker ended:\n{log.read_text()}")
    return log.read_text().count("is ready") == times


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Whatever a test starts in it ends with it."""
    typed = Shell(tmp_path)
    yield typed
    typed.stop_all()


def test_in_the_background(shell: Shell) -> None:
    """`-daemon`: each command returns, and the stop scripts end what was started, once."""
    assert (
        shell.run("zookeeper-server-start.sh", "-daemon", "config/zookeeper.properties").returncode
        == 0
    )
    started = shell.run("kafka-server-start.sh", "-daemon", "config/server.properties")
    assert started.returncode == 0, started.stderr
    shell.carries_a_record()
    reported = shell.run(
        "kafka-topics.sh", "--list", "--zookeeper", f"localhost:{shell.zookeeper_port}"
    )
    assert "greetings" in reported.stdout.splitlines()
    shell.stop_all()
    assert shell.run("kafka-server-stop.sh").stdout == "No kafka server to stop\n"
    assert shell.run("zookeeper-server-stop.sh").stdout == "No zookeeper server to stop\n"


def test_in_the_foreground(shell: Shell) -> None:
    """Two terminals that stay busy until the stop scripts are run in a third; a broker that is
    started again has its topics.
    """
    log = shell.directory / "kafka-server-start.sh.log"
    with ExitStack() as ends:
        zookeeper = shell.begin("zookeeper-server-start.sh", "config/zookeeper.properties")
        ends.callback(zookeeper.wait, seconds(SETTLE))
        ends.callback(zookeeper.terminate)
        for attempt in range(2):
            broker = shell.begin("kafka-server-start.sh", "config/server.properties")
            ends.callback(broker.wait, seconds(SETTLE))
            ends.callback(broker.kill)
            wait_for("a broker that is ready", partial(ready, log, attempt + 1, broker))
            if attempt == 0:
                shell.carries_a_record()
            assert zookeeper.poll() is None
            assert shell.run("kafka-server-stop.sh").returncode == 0
            assert broker.wait(seconds(SETTLE)) == 0
        assert shell.run("zookeeper-server-stop.sh").returncode == 0
        zookeeper.wait(seconds(SETTLE))
