"""What waits in a running broker, and how long what it waits for takes."""

from pathlib import Path

from prometheus_client.metrics_core import Metric

from barnabas_broker.server.metrics.waiting import Waits
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.zk.session_counts import SessionCounts
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.members import Member, find
from tests.broker.server.metrics.test_families import scrape, value
from tests.broker.server.running import Wire, fetch_request, port_of, running_node
from tests.oracle.apache import OwnZooKeeper
from tests.waiting import wait_for

ADMIN = {"barnabas.admin.listener": "127.0.0.1:0", "group.initial.rebalance.delay.ms": "0"}
BATCH = build_batch([(1000, None, b"value", ())])
PURGATORY = "kafka_server_delayedoperationpurgatory_"
SESSION = "kafka_server_sessionexpirelistener_"


def until(node: BrokerServer, name: str, wanted: float, **labels: str) -> dict[str, Metric]:
    """Look until a sample is what it is to become."""
    return wait_for(
        f"{name} of {wanted:g}",
        lambda: scrape(node),
        until=lambda it: value(it, name, **labels) == wanted,
    )


def test_requests_that_wait(tmp_path: Path) -> None:
    """A fetch that waits on two partitions is one request and two waits, until it is answered; a
    member is awaited for its heartbeat.
    """
    with running_node(tmp_path, ADMIN) as node, Wire(port_of(node)) as wire:
        wire.create_topic("quiet", partitions=2)
        find(wire, "group")
        Member(wire, "group").enter()
        found = scrape(node)
        for name in ("Produce", "Fetch", "Rebalance"):
            assert value(found, f"{PURGATORY}numdelayedoperations", delayedoperation=name) == 0
        assert value(found, f"{PURGATORY}purgatorysize", delayedoperation="Heartbeat") == 1
        both = [("quiet", 0, 0), ("quiet", 1, 0)]
        with Wire(port_of(node)) as patient:
            patient.send(fetch_request(both, max_wait_ms=600_000, min_bytes=1), 12)
            sizes = f"{PURGATORY}purgatorysize"
            seen = until(node, sizes, 2, delayedoperation="Fetch")
            assert value(seen, f"{PURGATORY}numdelayedoperations", delayedoperation="Fetch") == 1
            wire.produce("quiet", BATCH)
            assert patient.receive_frame()
            until(node, sizes, 0, delayedoperation="Fetch")


def test_syncs_of_group_commits_are_timed(tmp_path: Path) -> None:
    """Each sync that a record waited for is counted, with the time it took."""
    settings = ADMIN | {"barnabas.durability": "fsync"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("safe")
        before = value(scrape(node), "barnabas_group_commit_seconds_count")
        wire.produce("safe", BATCH)
        found = scrape(node)
    assert value(found, "barnabas_group_commit_seconds_count") == before + 1
    assert 0 < value(found, "barnabas_group_commit_seconds", quantile="0.5") < 600


def test_the_session_with_zookeeper(tmp_path: Path) -> None:
    """Its state, how often it was connected and lost, and how long answers take."""
    with OwnZooKeeper(directory=tmp_path / "zookeeper") as zookeeper:
        settings = ADMIN | {"zookeeper.connect": zookeeper.connect}
        with running_node(tmp_path / "data", settings) as node, Wire(port_of(node)) as wire:
            wire.create_topic("told")
            found = scrape(node)
            assert value(found, f"{SESSION}sessionstate", state="CONNECTED") == 1
            assert value(found, f"{SESSION}sessionstate", state="EXPIRED") == 0
            assert value(found, f"{SESSION}zookeepersyncconnects_total") == 1
            latency = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
            assert value(found, f"{latency}_count") >= 1
            assert value(found, latency, quantile="0.99") > 0


def test_session_states_are_counted() -> None:
    """Every change of it is a state and a count."""
    counts = SessionCounts()
    waits = Waits(None, counts)
    counts.connected()
    counts.disconnected()
    counts.connected()
    counts.expired()
    counts.took(1500)
    found = {family.name: family for family in waits.families(0)}
    reported = {name.removeprefix(SESSION): each.samples[0].value for name, each in found.items()}
    assert reported["zookeepersyncconnects"] == 2
    assert reported["zookeeperdisconnects"] == reported["zookeeperexpires"] == 1
    states = {each.labels["state"]: each.value for each in found[f"{SESSION}sessionstate"].samples}
    assert [state for state, is_it in states.items() if is_it] == ["EXPIRED"]
    counts.closed()
    assert counts.state.value == "CLOSED"
