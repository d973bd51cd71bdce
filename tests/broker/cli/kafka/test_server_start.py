"""Servers started and stopped by the scripts of Kafka's names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.oracle.apache import free_port
from tests.waiting import RUN, START, seconds, wait_for

BIN = Path(sys.executable).parent
Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Run a script by name, where it finds nobody else's servers."""

    def run(name: str, *args: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "BARNABAS_RUN_DIR": str(tmp_path / "run"),
                       "LOG_DIR": str(tmp_path / "logs")}  # fmt: skip
        return subprocess.run(
            [BIN / name, *args], env=environment, cwd=tmp_path, capture_output=True, text=True,
            timeout=seconds(RUN), check=False,
        )  # fmt: skip

    return run


def test_a_broker_in_the_background(script: Script, tmp_path: Path) -> None:
    """It serves when the command returns; a second one on its data is told why not; it stops."""
    port = free_port()
    (tmp_path / "server.properties").write_text(
        f"broker.id=3\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path}/data\n"
    )
    where = ("--bootstrap-server", f"127.0.0.1:{port}")
    started = script("kafka-server-start.sh", "-daemon", "server.properties", "--override",
                     "num.partitions=3")  # fmt: skip
    assert started.returncode == 0, started.stderr
    try:
        assert script("kafka-topics.sh", *where, "--create", "--topic", "t").returncode == 0
        assert script("kafka-get-offsets", *where).stdout == "t:0:0\nt:1:0\nt:2:0\n"
        again = script("kafka-server-start", "-daemon", "server.properties")
        assert again.returncode == 1
        assert "in use" in again.stderr
        assert script("kafka-server-stop", "--node-id", "4").stdout == "No kafka server to stop\n"
    finally:
        assert script("kafka-server-stop").returncode == 0
    wait_for(
        "no server that could be stopped",
        lambda: script("kafka-server-stop"),
        until=lambda outcome: outcome.returncode != 0,
        within=START,
    )


def test_no_jars_of_zookeeper(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what there is instead."""
    # Where the machine has jars, it has no Java.
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "zookeeper.properties").write_text("clientPort=2181\n")
    outcome = script("zookeeper-server-start.sh", "zookeeper.properties")
    assert outcome.returncode == 1
    assert "apt-get install zookeeper" in outcome.stderr
    assert "a broker without zookeeper.connect needs no ZooKeeper" in outcome.stderr
    assert script("zookeeper-server-stop").stdout == "No zookeeper server to stop\n"


def test_a_class_that_has_no_tool(script: Script) -> None:
    """The error names those that there are."""
    outcome = script("kafka-run-class", "kafka.tools.MirrorMaker")
    assert outcome.returncode == 1
    assert "kafka.tools.MirrorMaker is not supported" in outcome.stderr
    assert "kafka.tools.GetOffsetShell" in outcome.stderr
