"""Ports, settings and reasons, without a broker; and a broker that cannot start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.local import broker
from barnabas_operator.local.state import LocalError, Port
from tests.operator.local.laptop import Laptop, cluster
from tests.oracle.apache import free_port


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_port_asked_for_comes_first(taken: int) -> None:
    """Then the one that the listener had, then any."""
    document = cluster()
    plain = read_cluster(document).body.spec.listeners[0]
    had = free_port()
    assert broker.choose_port(plain, None, keep=False) == Port(plain.port, plain.port)
    before = Port(plain.port, had)
    assert broker.choose_port(plain, before, keep=False).got == plain.port
    assert broker.choose_port(plain, before, keep=True).got == had
    assert broker.choose_port(plain, Port(1, had), keep=True).got == plain.port
    with socket.create_server(("127.0.0.1", plain.port)):
        assert broker.choose_port(plain, before, keep=False).got == had
        assert broker.choose_port(plain, Port(plain.port, taken), keep=True).got == 0


def test_a_nodeport_listener_has_its_port_of_the_nodes() -> None:
    """Clients outside of Kubernetes know that one; the pod's, if Kubernetes is to choose."""
    document = cluster()
    external = read_cluster(document).body.spec.listeners[1]
    assert broker.asked_port(external, 0) == external.node_port
    del document["spec"]["listeners"][1]["nodePort"]
    assert broker.asked_port(read_cluster(document).body.spec.listeners[1], 2) == 9096


def test_settings_are_those_of_pods_on_loopback(tmp_path: Path) -> None:
    """No ZooKeeper, the ports that are free, a data directory of its own."""
    found = read_cluster(cluster(config={"num.partitions": "5"}))
    ports = {"plain": Port(9092, 9092), "external": Port(32094, 40001)}
    text = broker.settings_text(found, ports, tmp_path / "data", pki=tmp_path)
    assert parse_properties(text.encode(), origin="test") == {
        "listeners": "PLAIN://127.0.0.1:9092,EXTERNAL://127.0.0.1:40001",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,EXTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "PLAIN",
        "barnabas.admin.listener": "127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        "num.partitions": "5",
    }


def test_durability_is_that_of_the_resource(tmp_path: Path) -> None:
    """`durability: fsync` means on a laptop what it means in a pod."""
    found = read_cluster(cluster(durability="fsync"))
    ports = {"plain": Port(9092, 9092), "external": Port(32094, 40001)}
    text = broker.settings_text(found, ports, tmp_path / "data", pki=tmp_path)
    assert parse_properties(text.encode(), origin="test")["barnabas.durability"] == "fsync"


def test_differences_are_reported_by_setting() -> None:
    """Comments and order are none."""
    before = "# one\na=1\nb=2\nc=3\n"
    after = "c=3\na=2\nd=4\n"
    assert broker.differences(before, before.replace("one", "two")) == []
    assert broker.differences(before, after) == [
        "a was 1, becomes 2",
        "b is no longer set",
        "d=4 is new",
    ]


def test_a_broker_that_cannot_start_says_why(laptop: Laptop) -> None:
    """Its own last words, and where the rest is; nothing is left running."""
    data = laptop.state.broker(0) / "data"
    data.parent.mkdir(parents=True)
    data.touch()
    with pytest.raises(LocalError, match=r"the broker cannot start: .*data.* \(log: "):
        laptop.up(cluster())
    assert broker.BrokerFiles(laptop.state.broker(0)).entry() is None


def test_a_broker_that_is_late_is_not_left(laptop: Laptop) -> None:
    """The next try begins with none."""
    with pytest.raises(LocalError, match="is not ready in time"):
        laptop.up(cluster(), timeout_s=1e-9)
    assert broker.BrokerFiles(laptop.state.broker(0)).entry() is None
