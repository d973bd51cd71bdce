"""A broker's start and stop, and what is left between them."""

import socket
from pathlib import Path

import pytest

from barnabas_broker.cluster.image import Endpoint
from barnabas_broker.log.directories import LogDirectoryError
from barnabas_broker.server.node.addresses import advertised_endpoints, machine_name
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.running import Wire, port_of, running_node

BATCH = build_batch([(1000, b"key", b"value", ())])


def test_topics_and_records_outlive_the_process(tmp_path: Path) -> None:
    """Names, ids, partitions, settings and records are there again, the cluster id too."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("kept", partitions=2, retention_ms="-1")
        wire.produce("kept", BATCH, partition=1)
        before = node.broker.image
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        after = node.broker.image
        assert after.cluster_id == before.cluster_id
        assert after.topics["kept"].id == before.topics["kept"].id
        assert dict(after.topics["kept"].config) == {"retention.ms": "-1"}
        assert wire.produce("kept", BATCH, partition=1).base_offset == 1


def test_a_second_broker_is_kept_out(tmp_path: Path) -> None:
    """Two brokers on one directory would destroy it; the line says which directory."""
    with (
        running_node(tmp_path),
        pytest.raises(LogDirectoryError, match=str(tmp_path)),
        running_node(tmp_path),
    ):
        pass


def test_a_port_in_use(tmp_path: Path) -> None:
    """The line names the address, and the directory can be used again after."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(StartupError, match=f"port {port} is in use"),
            running_node(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}),
        ):
            pass
    with running_node(tmp_path) as node:
        assert port_of(node) > 0


def test_another_brokers_directory(tmp_path: Path) -> None:
    """meta.properties says whose it is; both ids are named."""
    with running_node(tmp_path):
        pass
    with (
        pytest.raises(LogDirectoryError, match=r"broker 0 .*this is broker 5"),
        running_node(tmp_path, {"broker.id": "5"}),
    ):
        pass


def test_another_clusters_directory(tmp_path: Path) -> None:
    """Coordination data of one cluster beside logs of another is refused."""
    with running_node(tmp_path):
        pass
    meta = tmp_path / "meta.properties"
    lines = meta.read_text().splitlines()
    meta.write_text(
        "\n".join(
            "cluster.id=AAAAAAAAAAAAAAAAAAAAAA" if line.startswith("cluster.id") else line
            for line in lines
        )
    )
    with (
        pytest.raises((CoordinationError, LogDirectoryError), match="AAAAAAAAAAAAAAAAAAAAAA"),
        running_node(tmp_path),
    ):
        pass


def test_several_listeners_advertise_their_own(tmp_path: Path) -> None:
    """A client is told the address of the listener it came in on."""
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised.listeners": "INSIDE://inside.example:1001,OUTSIDE://outside.example:1002",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with running_node(tmp_path, settings) as node:
        reported = []
        for listener in node.listeners:
            with Wire(listener.port) as wire:
                (broker,) = wire.ask(MetadataRequest(topics=[]), 9).brokers
                reported.append((broker.host, broker.port))
    assert reported == [("inside.example", 1001), ("outside.example", 1002)]


def test_an_id_is_chosen_once(tmp_path: Path) -> None:
    """Without broker.id the first free one above the reserved is taken, and kept."""
    for settings in ({"broker.id": "-1"}, {"broker.id": "-1", "reserved.broker.max.id": "7"}):
        with running_node(tmp_path, settings) as node:
            assert node.broker.id == 1001


def test_logs_are_spread_over_directories(tmp_path: Path) -> None:
    """Each new partition goes where there are fewest."""
    directories = [tmp_path / name for name in ("one", "two")]
    settings = {"log.dirs": ",".join(map(str, directories))}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("spread", partitions=4)
    assert [len(list(directory.glob("spread-*"))) for directory in directories] == [2, 2]


@pytest.mark.parametrize(
    ("settings", "endpoint"),
    [
        (
            {"listeners": "PLAINTEXT://127.0.0.1:0"},
            Endpoint("PLAINTEXT", "127.0.0.1", 4242, "PLAINTEXT"),
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            Endpoint("PLAINTEXT", machine_name(), 9092, "PLAINTEXT"),
        ),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:0",
                "advertised.listeners": "PLAINTEXT://kafka.example:19092",
            },
            Endpoint("PLAINTEXT", "kafka.example", 19092, "PLAINTEXT"),
        ),
    ],
)
def test_advertised(settings: dict[str, str], endpoint: Endpoint) -> None:
    """What was left open is filled in: the bound port, this machine's name."""
    reported = advertised_endpoints(BrokerSettings.from_mapping(settings), {"PLAINTEXT": 4242})
    assert reported == (endpoint,)
