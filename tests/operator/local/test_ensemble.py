"""The processes of Apache's ensemble, with a Java that only looks like one."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.local import broker, coordination, ensemble, processes, zookeeper
from barnabas_operator.local.ensemble import Member
from barnabas_operator.local.state import LocalError, MemberPorts, Record, StateDirectory
from tests.oracle.apache import free_port
from tests.waiting import START, seconds, wait_for

JAVA = """\
#!{python}
import pathlib, signal, socket, sys, threading
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
lines = pathlib.Path(sys.argv[-1]).read_text().splitlines()
told = dict(line.split("=", 1) for line in lines if "=" in line)
number = int((pathlib.Path(told["dataDir"]) / "myid").read_text())
members = sorted(name for name in told if name.startswith("server."))
mode = "standalone" if not members else "leader" if number == len(members) else "follower"
if "broken" in told["dataDir"]:
    print("[now] ERROR Unable to load database on disk")
    sys.exit("\\tat org.apache.zookeeper.server.quorum.QuorumPeer")
if "silent" in told["dataDir"]:
    signal.pause()
listening = []
for name in ("clientPort", f"server.{{number}}"):
    if name in told:
        try:
            port = int(told[name].rsplit(":", 1)[-1])
            listening.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            print("java.net.BindException: Address already in use", flush=True)
            signal.pause()
while True:
    connection, _ = listening[0].accept()
    with connection:
        asked = connection.recv(4)
        conf = "dataDir=" + told["dataDir"] + "/version-2\\n"
        connection.sendall((conf if asked == b"conf" else f"Mode: {{mode}}\\n").encode())
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateDirectory]:
    """A state directory, and a home of Java and of ZooKeeper; nothing runs after the test."""
    java, jar = tmp_path / "java" / "bin" / "java", tmp_path / "lib" / "zookeeper-3.9.3.jar"
    for each in (java, jar):
        each.parent.mkdir(parents=True)
    java.write_text(JAVA.format(python=sys.executable))
    java.chmod(0o755)
    jar.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("ZOOKEEPER_HOME", str(tmp_path))
    state = StateDirectory(tmp_path / "state")
    yield state
    for directory in state.path.glob("zookeeper-*"):
        entry = zookeeper.ZooKeeperFiles(directory).entry()
        if entry is not None:
            processes.abandon(entry, timeout_s=seconds(START))


def wanted(members: int = 3) -> Record:
    """The record of a cluster with so many members; the usual ports are for others here."""
    ports = {number: MemberPorts(client=free_port()) for number in range(1, members + 1)}
    return Record(cluster="c", file="f", ensemble=ports)


def ensure(record: Record, state: StateDirectory) -> list[str]:
    """Have all run; returns what was said."""
    said: list[str] = []
    ensemble.ensure(record, state, say=said.append, deadline=seconds(START) + time.monotonic())
    return said


def kill(member: Member) -> None:
    """As a crash would end it."""
    entry = member.files.entry()
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    wait_for("the end of the member", lambda: entry.running, until=lambda it: not it)


def test_three_members_on_one_host(state: StateDirectory) -> None:
    """Each has a directory, a number and ports of its own, and knows those of all."""
    record = wanted()
    (said,) = ensure(record, state)
    addresses = ensemble.addresses(record)
    assert said == f"Apache ZooKeeper serves {addresses}: 3 members, 3 leads"
    assert coordination.connect(record) == f"{addresses}/c"
    every = ensemble.members(record, state)
    settings = [parse_properties(each.files.settings.read_bytes(), origin="") for each in every]
    servers = {
        f"server.{number}": f"127.0.0.1:{ports.peer}:{ports.election}"
        for number, ports in record.ensemble.items()
    }
    for each, found in zip(every, settings, strict=True):
        assert found.items() >= servers.items()
        assert found["dataDir"] == str(each.files.data)
        assert found["clientPort"] == str(each.ports.client)
        assert each.files.data.joinpath("myid").read_text() == f"{each.number}\n"
    assert len({port for each in every for port in astuple(each.ports)}) == 9
    assert ensure(record, state) == []


def test_a_killed_member_is_reported_and_restarted(state: StateDirectory) -> None:
    """Where it was; the others are left alone."""
    record = wanted()
    ensure(record, state)
    before, every = dict(record.ensemble), ensemble.members(record, state)
    kill(every[1])
    servers = coordination.servers(record, state)
    assert [each.mode for each in servers] == ["follower", None, "leader"]
    assert [each.pid is None for each in servers] == [False, True, False]
    pids = [each.pid for each in servers]
    said = ensure(record, state)
    assert said[0].startswith("ZooKeeper member 2 had ended without a request to stop")
    assert len(said) == 2
    assert record.ensemble == before
    assert [each.pid for each in coordination.servers(record, state)][::2] == pids[::2]


def test_a_port_that_was_taken_meanwhile(state: StateDirectory) -> None:
    """Others are chosen, and members that run are started again with them."""
    record = wanted()
    ensure(record, state)
    before, every = dict(record.ensemble), ensemble.members(record, state)
    kill(every[0])
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = somebody.getsockname()[1]
        record.ensemble[1] = replace(record.ensemble[1], election=taken)
        said = ensure(record, state)
    assert "restarting ZooKeeper member 3: the ports of the ensemble have changed" in said
    assert record.ensemble[1].election not in (taken, before[1].election)
    assert all(each.mode() for each in every)


def test_a_port_that_is_taken_between_the_choice_and_the_start(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever answers at a port of ours is not taken for the member; it is started elsewhere."""
    other = StateDirectory(state.path.with_name("other"))
    first, record = wanted(1), wanted(1)
    ensure(first, other)
    try:
        record.ensemble = dict(first.ensemble)
        free = broker.is_free
        lies = iter([True])
        monkeypatch.setattr(ensemble, "is_free", lambda port: next(lies, None) or free(port))
        (said,) = ensure(record, state)
        assert record.ensemble[1].client != first.ensemble[1].client
        assert said == f"Apache ZooKeeper serves {ensemble.addresses(record)}: one member"
    finally:
        zookeeper.end(ensemble.members(first, other)[0].files, timeout_s=seconds(START))


def test_it_says_why_one_does_not_start(state: StateDirectory) -> None:
    """With the error that Java told before its trace; none is left running."""
    broken = StateDirectory(state.path / "broken")
    with pytest.raises(LocalError, match=r"member \d cannot start: .*Unable to load database"):
        ensure(wanted(), broken)
    assert not any(each.running for each in ensemble.members(wanted(), broken))


def test_data_of_another_member_are_refused(state: StateDirectory) -> None:
    """To start on them would give one vote to the ensemble twice."""
    data = state.member(2) / "data"
    data.mkdir(parents=True)
    data.joinpath("myid").write_text("3")
    with pytest.raises(LocalError, match=r"member 2 cannot start: .*says server\.3"):
        ensure(wanted(), state)


def test_without_java_it_says_what_to_install(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before anything is kept, so that another way may be chosen."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalError, match="there is none: install Apache ZooKeeper"):
        ensure(wanted(1), state)
    assert state.members() == []


def test_a_member_that_never_serves(state: StateDirectory) -> None:
    """It is named, and none that was started is left."""
    record, silent = wanted(), StateDirectory(state.path / "silent")
    with pytest.raises(LocalError, match="member 1 does not serve in time"):
        ensemble.ensure(record, silent, say=lambda _: None, deadline=time.monotonic())
    assert not any(each.running for each in ensemble.members(record, silent))
