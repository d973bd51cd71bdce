"""Brokers that do not start, or whose disk fails: rows of docs/operations/troubleshooting.md.

Each test provokes what its row quotes, and ends with the remedy at work.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from barnabas_broker.zk.session import SessionStore
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import fill, read_all
from tests.clients.troubles import create, send, until_logged
from tests.clients.troubleshooting import Row, rows
from tests.faults.disk import FaultyDisk
from tests.oracle.apache import OwnZooKeeper, ZooKeeper, free_port
from tests.waiting import wait_for


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Iterator[Row]:
    """The row that the test is named after; all it quotes must be seen."""
    wanted = request.node.name.removeprefix("test_").replace("_", "-")
    found = next(each for each in rows() if each.id == wanted)
    yield found
    assert not found.unseen


def refused(broker: Barnabas) -> str:
    """What a broker says that does not start."""
    with pytest.raises(RuntimeError, match="did not start") as caught:
        broker.start()
    return str(caught.value)


def test_wrong_setting(tmp_path: Path, row: Row) -> None:
    """A setting that cannot be is named, with what can."""
    broker = Barnabas(tmp_path, {"message.max.bytes": "1M"})
    row.seen(refused(broker))
    broker.settings["message.max.bytes"] = "1000000"
    with broker:
        assert create(broker, "t") is None


def test_port_in_use(tmp_path: Path, row: Row) -> None:
    """Another program has the port."""
    with socket.socket() as other:
        port = free_port()
        other.bind(("127.0.0.1", port))
        other.listen()
        broker = Barnabas(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
        row.seen(refused(broker))
    with broker:
        assert broker.bootstrap.endswith(f":{port}")


def test_directory_locked(tmp_path: Path, row: Row) -> None:
    """Two brokers, one directory."""
    settings = {"log.dirs": str(tmp_path / "shared")}
    second = Barnabas(tmp_path / "second", settings)
    with Barnabas(tmp_path / "first", settings):
        row.seen(refused(second))
    with second:
        assert create(second, "t") is None


def test_cluster_id(tmp_path: Path, row: Row) -> None:
    """The directory of another cluster: its meta.properties is in the way."""
    broker = Barnabas(tmp_path, {"broker.id": "0"})
    with broker:
        create(broker, "t")
    meta = broker.log_dirs[0] / "meta.properties"
    own = meta.read_text()
    lines = [line for line in own.splitlines() if not line.startswith("cluster.id")]
    meta.write_text("\n".join([*lines, "cluster.id=KL7i88V6QaWiQM7YQqJN6g", ""]))
    row.seen(refused(broker))
    meta.write_text(own)
    with broker:
        assert send(broker, "t") is None


def test_two_clusters(tmp_path: Path, row: Row) -> None:
    """On one ensemble, and once on one path of it; each goes on where it was."""
    with OwnZooKeeper(directory=tmp_path / "zookeeper") as zookeeper:
        connect = {"broker.id": "0", "zookeeper.connect": zookeeper.connect}
        second = Barnabas(tmp_path / "second", connect)
        second.settings["zookeeper.connect"] = f"{zookeeper.connect}/second"
        with Barnabas(tmp_path / "first", connect) as first:
            assert create(first, "of-the-first") is None
            with second:
                assert create(second, "of-the-second") is None
            second.settings["zookeeper.connect"] = zookeeper.connect
            row.seen(refused(second))
            second.settings["zookeeper.connect"] = f"{zookeeper.connect}/second"
            with second:
                assert send(second, "of-the-second") is None
            assert send(first, "of-the-first") is None


def test_broker_id(tmp_path: Path, row: Row) -> None:
    """The directory of another broker."""
    broker = Barnabas(tmp_path, {"broker.id": "0"})
    with broker:
        create(broker, "t")
    broker.settings["broker.id"] = "1"
    row.seen(refused(broker))
    broker.settings["broker.id"] = "0"
    with broker:
        assert send(broker, "t") is None


def test_no_zookeeper(tmp_path: Path, row: Row) -> None:
    """Nobody is at zookeeper.connect, until a ZooKeeper starts there."""
    zookeeper = ZooKeeper(directory=tmp_path / "zookeeper")
    settings = {
        "broker.id": "0",
        "zookeeper.connect": zookeeper.connect,
        "zookeeper.connection.timeout.ms": "1000",
    }
    broker = Barnabas(tmp_path / "broker", settings)
    row.seen(refused(broker))
    broker.settings["zookeeper.connection.timeout.ms"] = "60000"
    with zookeeper, broker:
        assert create(broker, "t") is None


def test_session_expired(tmp_path: Path, row: Row) -> None:
    """A broker that stands still for longer than its session lasts, and then goes on."""
    with ZooKeeper(directory=tmp_path / "zookeeper") as zookeeper:
        settings = {
            "broker.id": "0",
            "zookeeper.connect": zookeeper.connect,
            "zookeeper.session.timeout.ms": "4000",
        }
        with (
            Barnabas(tmp_path / "broker", settings) as broker,
            closing(SessionStore(zookeeper.connect, session_timeout_ms=40_000)) as observer,
        ):
            observer.open(connection_timeout_ms=60_000)
            assert create(broker, "t") is None
            os.kill(broker.pid, signal.SIGSTOP)
            registration = partial(observer.exists, "/brokers/ids/0")
            wait_for("the broker's znode", registration, until=lambda stat: stat is None)
            os.kill(broker.pid, signal.SIGCONT)
            wait_for("the broker's znode", registration, until=lambda stat: stat is not None)
            row.seen(until_logged(broker, "ZooKeeper session expired"))
            assert send(broker, "t") is None


def test_damaged_log(tmp_path: Path, row: Row) -> None:
    """What a crash left of a write is cut off, and everything before it is there."""
    broker = Barnabas(tmp_path, {"broker.id": "0"})
    broker.start()
    create(broker, "t")
    fill(broker.bootstrap, "t", 10)
    broker.kill()
    segment = broker.log_dirs[0] / "t-0" / "00000000000000000000.log"
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:50])
    with broker:
        row.seen(broker.log_file.read_text())
        assert len(read_all(broker.bootstrap, "t")) == 10


def test_disk_full(tmp_path: Path, row: Row) -> None:
    """Records are refused while the disk is full and taken when it is not, by the same process."""
    with FaultyDisk(tmp_path / "logs") as disk:
        settings = {
            "broker.id": "0",
            "log.dirs": str(tmp_path / "logs"),
            "barnabas.log.dirs.min.free.bytes": "0",
            "barnabas.log.dirs.resume.bytes": "1",
        }
        with Barnabas(tmp_path / "broker", settings, disk.environment) as broker:
            create(broker, "t")
            disk.fill()
            row.seen(send(broker, "t", message_timeout_ms=1500))
            row.seen(until_logged(broker, "Log directory full"))
            disk.heal()
            until_logged(broker, "Log directory writable again")
            assert send(broker, "t") is None


def test_disk_failed(tmp_path: Path, row: Row) -> None:
    """One directory of two fails; what is on the other goes on, and a restart brings it back."""
    with FaultyDisk(tmp_path / "bad") as disk:
        settings = {"broker.id": "0", "log.dirs": f"{tmp_path / 'good'},{tmp_path / 'bad'}"}
        broker = Barnabas(tmp_path / "broker", settings, disk.environment)
        with broker:
            for name in "ab":
                create(broker, name)
            lost, kept = sorted("ab", key=lambda name: (tmp_path / "good" / f"{name}-0").exists())
            disk.faults.write_errno = errno.EIO
            assert send(broker, lost, message_timeout_ms=1500) is not None
            row.seen(until_logged(broker, "Log directory failed"))
            assert send(broker, kept) is None
        disk.heal()
        with broker:
            assert send(broker, lost) is None
