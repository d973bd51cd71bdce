"""`barnabas zookeeper start`: a process that kazoo works with, and that may be killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from tests.waiting import ANSWER, START, forget, seconds, watch

COMMAND = [sys.executable, "-m", "barnabas_broker.cli", "zookeeper", "start"]


@contextmanager
def started(directory: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and where it serves."""
    command = [*COMMAND, "--data-dir", str(directory), "--port", "0", *args]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **streams) as process:  # type: ignore[call-overload]
        try:
            reported = process.stdout.readline().split()
            assert reported[:1] == ["zookeeper:"], process.stderr.read()
            watch("ZooKeeper", process.pid)
            yield process, reported[1]
        finally:
            forget(process.pid)
            process.kill()


@contextmanager
def client(address: str) -> Iterator[KazooClient]:
    """A session of kazoo's."""
    # A session that no restart outlives, on a busy machine either.
    opened = KazooClient(address, timeout=seconds(ANSWER))
    try:
        opened.start(seconds(START))
        yield opened
    finally:
        opened.stop()
        opened.close()


def test_it_says_that_it_is_for_development(tmp_path: Path) -> None:
    """On every start; and it ends with 0 when it is told to."""
    with started(tmp_path) as (process, address), client(address) as kazoo:
        assert kazoo.create("/a", b"x") == "/a"
        kazoo.stop()
        process.terminate()
        _, said = process.communicate(timeout=seconds(START))
    assert process.returncode == 0
    assert "This is one process for development and tests" in said


def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    """What it answered it has after kill -9, ephemeral znodes of a living session too."""
    with started(tmp_path) as (process, address), client(address) as kazoo:
        kazoo.create("/kept", b"x")
        kazoo.create("/mine", b"", ephemeral=True)
        for number in range(50):
            kazoo.set("/kept", b"%d" % number)
        session = kazoo.client_id[0]
        process.kill()
        process.wait()
        with started(tmp_path) as (_, again), client(again) as other:
            data, stat = other.get("/kept")
            assert (data, stat.version) == (b"49", 50)
            assert other.exists("/mine").ephemeralOwner == session


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    """One line, and the exit code of a failed operation."""
    with started(tmp_path):
        command = [*COMMAND, "--data-dir", str(tmp_path)]
        limit_s = seconds(START)
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 1
    assert "another process uses this directory" in done.stderr
