"""A record made anew: what the files tell of brokers, ports and what keeps the data."""

from __future__ import annotations

from pathlib import Path

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.local.repair import bare, remade
from barnabas_operator.local.state import MemberPorts, Port, StateDirectory
from tests.operator import examples

LISTENERS = [{"name": "plain", "type": "internal", "port": 9092}]


def made(state: StateDirectory, name: str, text: str) -> None:
    """A file in the directory."""
    path = state.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_brokers_on_the_zookeeper_for_development(tmp_path: Path) -> None:
    """Their ports and its port are in their settings; one without settings has none."""
    state = StateDirectory(tmp_path)
    settings = "listeners=PLAIN://127.0.0.1:{}\nzookeeper.connect=127.0.0.1:2345/quickstart\n"
    for number, port in ((0, 41234), (1, 9093)):
        made(state, f"broker-{number}/server.properties", settings.format(port))
    made(state, "broker-2/broker.log", "")
    made(state, "broker-0/data/meta.properties", "version=0\ncluster.id=abc\n")
    cluster = read_cluster(examples.cluster(listeners=LISTENERS))
    record = remade(state, cluster, Path("/file"))
    assert (record.cluster, record.file, record.cluster_id) == ("quickstart", "/file", "abc")
    assert [each.ports for each in record.brokers.values()] == [
        {"plain": Port(9092, 41234)}, {"plain": Port(9093, 9093)}, {},
    ]  # fmt: skip
    assert record.zookeeper == 2345
    assert not record.ensemble


def test_members_of_apaches_ensemble(tmp_path: Path) -> None:
    """From the zoo.cfg of each; one member alone has no ports among members."""
    state = StateDirectory(tmp_path)
    servers = "".join(f"server.{n}=127.0.0.1:{100 + n}:{200 + n}\n" for n in (1, 2, 3))
    for number in (1, 2, 3):
        made(state, f"zookeeper-{number}/zoo.cfg", f"clientPort={2180 + number}\n{servers}")
        made(state, f"zookeeper-{number}/data/myid", str(number))
    assert bare(state).ensemble == {
        n: MemberPorts(client=2180 + n, peer=100 + n, election=200 + n) for n in (1, 2, 3)
    }


def test_an_empty_directory(tmp_path: Path) -> None:
    """A cluster that never was has no brokers yet."""
    record = bare(StateDirectory(tmp_path))
    assert (record.brokers, record.ensemble, record.zookeeper) == ({}, {}, None)
