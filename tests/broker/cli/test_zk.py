"""`barnabas zk`: znodes as people read them, members as they fare."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.cli.conftest import run_command
from tests.broker.cli.test_zookeeper import client, started


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[str]:
    """A server, with what a broker might have written below a chroot."""
    with started(tmp_path) as (_, address):
        with client(address) as kazoo:
            kazoo.ensure_path("/kafka/brokers/topics")
            kazoo.create("/kafka/cluster", b"")
            kazoo.create("/kafka/cluster/id", b'{"version":"1","id":"abc"}')
            kazoo.create("/kafka/controller_epoch", b"7")
            kazoo.create("/kafka/raw", b"\xff\x00")
        yield f"{address}/kafka"


def test_listing(ensemble: str) -> None:
    """Below a path, or all the way down; paths are those below the chroot."""
    names = run_command("zk", "ls", "-z", ensemble).stdout.splitlines()
    assert names == ["/brokers", "/cluster", "/controller_epoch", "/raw"]
    all_ = run_command("zk", "ls", "/", "-r", "-z", ensemble).stdout.splitlines()
    assert "/brokers/topics" in all_
    assert run_command("zk", "ls", "/brokers/", "-z", ensemble).stdout == "/brokers/topics\n"


def test_get_prints_data_and_stat(ensemble: str) -> None:
    """JSON is laid out, text is text, bytes are digits; then the stat."""
    said = run_command("zk", "get", "/cluster/id", "-z", ensemble).stdout
    assert said.startswith('{\n  "version": "1",\n  "id": "abc"\n}\n# version: 0\n')
    assert run_command("zk", "get", "/raw", "-z", ensemble).stdout.startswith("ff00\n")
    reported = run_command(
        "zk", "get", "/controller_epoch", "--output", "json", "-z", ensemble
    ).json()
    assert (reported["data"], reported["stat"]["bytes"], reported["stat"]["session"]) == (
        7,
        1,
        None,
    )


def test_a_missing_znode_is_named(ensemble: str) -> None:
    """One line names it; looking makes nothing."""
    failed = run_command("zk", "get", "/none", "-z", ensemble, fails=1)
    assert failed.stderr == "Error: there is no znode /none\n"
    other = ensemble.replace("/kafka", "/other")
    assert "no znode /" in run_command("zk", "ls", "-z", other, fails=1).stderr
    root = ensemble.removesuffix("/kafka")
    assert run_command("zk", "ls", "-z", root).stdout.splitlines() == ["/kafka", "/zookeeper"]
    wrong = run_command("zk", "ls", "-z", "host:port", fails=2)
    assert "host:port" in wrong.stderr


def test_members(ensemble: str) -> None:
    """Each member by itself; one that does not serve is a failure."""
    said = run_command("zk", "status", "-z", ensemble).stdout
    assert "standalone" in said
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    connect = f"127.0.0.1:{port},{ensemble}"
    outcome = run_command("zk", "status", "--output", "json", "-z", connect, fails=1)
    gone, serving = json.loads(outcome.stdout)
    assert (gone["mode"], serving["mode"]) == (None, "standalone")
    assert gone["trouble"] == "Connection refused"
    assert outcome.stderr == "Error: 1 of 2 members do not serve\n"


def test_a_member_with_an_invalid_host_is_a_row(ensemble: str) -> None:
    """A mistake in one address of several does not hide the others."""
    outcome = run_command("zk", "status", "--output", "json", "-z", f"a..b:1,{ensemble}", fails=1)
    wrong, serving = json.loads(outcome.stdout)
    assert (wrong["trouble"], serving["mode"]) == ("a..b is not a valid host name", "standalone")


def test_an_unreachable_ensemble_is_reported() -> None:
    """It says where it looked, and for how long."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    connect = f"127.0.0.1:{port}"
    failed = run_command("zk", "ls", "-z", connect, "--timeout", "0.5", fails=1)
    assert f"no ZooKeeper answers at {connect} within 500 ms" in failed.stderr
