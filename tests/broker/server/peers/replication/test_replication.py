"""Over which listener which brokers are reached."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.cluster.image import BrokerRegistration, Endpoint, MetadataImage
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.server.peers.replication.replication import Replication
from barnabas_kafka.settings.broker import BrokerSettings

INSIDE = Endpoint("INSIDE", "b1", 9091)
CONTROL = Endpoint("CONTROL", "b1", 9090)
LISTENERS = {
    "listeners": "INSIDE://h:1,CONTROL://h:2,PLAINTEXT://h:3",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,CONTROL:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectories]:
    """Nothing on disk."""
    taken = LogDirectories.take([tmp_path])
    yield taken
    taken.close(clean=True, now_ms=0, threads=1)


def replication(logs: LogDirectories, peer: BrokerRegistration, **given: str) -> Replication:
    """Replication of broker 0, whose only peer is this one, with settings beside LISTENERS."""
    image = MetadataImage(cluster_id="c", brokers={peer.id: peer})
    settings = {name.replace("_", "."): value for name, value in given.items()}
    return Replication(
        0,
        logs,
        local_endpoint=lambda name: INSIDE if name == INSIDE.listener else None,
        security=lambda _: None,
        image=lambda: image,
        settings=lambda: BrokerSettings.from_mapping(LISTENERS | settings),
        broker_epoch=lambda: 1,
        monotonic_ms=lambda: 0,
        clock_ms=lambda: 0,
    )


def test_the_controller_has_a_listener_of_its_own_where_both_have_it(logs: LogDirectories) -> None:
    """As Kafka's controller; records go over the listener of brokers all the same."""
    both = BrokerRegistration(1, (INSIDE, CONTROL))
    reported = replication(logs, both, control_plane_listener_name="control")
    assert (reported.control_endpoint_of(1), reported.endpoint_of(1)) == (CONTROL, INSIDE)
    untold = replication(logs, both)
    assert untold.control_endpoint_of(1) == INSIDE


def test_a_broker_without_that_listener_is_reached_as_before(logs: LogDirectories) -> None:
    """It can be introduced broker by broker; whoever is not alive is not reached at all."""
    old = BrokerRegistration(1, (INSIDE,))
    among_old = replication(logs, old, control_plane_listener_name="CONTROL")
    assert among_old.control_endpoint_of(1) == INSIDE
    assert among_old.control_endpoint_of(2) is None


def test_a_broker_reaches_itself_by_the_name_that_its_certificate_has(logs: LogDirectories) -> None:
    """At the bound address, whether the advertised name can be resolved or not."""
    itself = BrokerRegistration(0, (Endpoint("INSIDE", "b0.brokers.svc", 19091),))
    found = replication(logs, itself).endpoint_of(0)
    assert found == Endpoint("INSIDE", "b1", 9091, server_name="b0.brokers.svc")
