"""A listener for the controller: what it decides is heard of where clients take all there is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from tests.cluster.metrics import SETTINGS, metric
from tests.cluster.running import ANSWER_S, Cluster, controlled_by

CONNECTIONS = 40
BROKERS, CONTROLLER = 1, 2
LISTENERS = ("PLAINTEXT", "BROKERS", "CONTROLLER")


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers with a listener each for clients, brokers and the controller."""
    settings = {
        **SETTINGS,
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in LISTENERS),
        "inter.broker.listener.name": "BROKERS",
        "control.plane.listener.name": "CONTROLLER",
        "max.connections": str(CONNECTIONS),
    }
    directory = tmp_path_factory.mktemp("control-plane")
    with Cluster(directory, settings=settings, listeners=LISTENERS) as started:
        yield started


def connections(cluster: Cluster, broker: int, listener: int) -> float:
    """How many a broker has on a listener."""
    name = "kafka_server_socket_server_metrics_connection_count"
    return metric(cluster, broker, name, listener=LISTENERS[listener])


def test_leaders_are_elected_while_clients_take_every_connection(
    cluster: Cluster, znodes: KazooClient
) -> None:
    """The next controller reaches the others on its listener, and so do they it."""
    cluster.create("led", partitions=6, replicas=3)
    cluster.until(lambda: controlled_by(znodes, 0))
    cluster.until(
        lambda: connections(cluster, 1, CONTROLLER) and connections(cluster, 2, CONTROLLER)
    )
    asked = [cluster.admin(cluster.address(broker, BROKERS)) for broker in (1, 2)]
    cluster.until(lambda: all("led" in each.list_topics(timeout=5).topics for each in asked))
    with ExitStack() as held:
        for broker in cluster.brokers:
            host, _, port = cluster.address(broker).rpartition(":")
            for _ in range(CONNECTIONS + 10):
                held.enter_context(socket.create_connection((host, int(port)), timeout=ANSWER_S))
        cluster.until(lambda: all(full(cluster, broker) for broker in cluster.brokers))
        cluster.brokers[0].kill()
        cluster.until(lambda: all(led_by_others(each) for each in asked))
    cluster.until(lambda: connections(cluster, 1, CONTROLLER) + connections(cluster, 2, CONTROLLER))


def full(cluster: Cluster, broker: int) -> bool:
    """Whether no client can connect to a broker any more."""
    taken = sum(connections(cluster, broker, listener) for listener in range(len(LISTENERS)))
    return taken >= CONNECTIONS


def led_by_others(asked: AdminClient) -> bool:
    """Whether a broker has heard of a leader and in-sync replicas of each that are alive."""
    found = asked.list_topics("led", timeout=5).topics["led"].partitions.values()
    return all(each.leader in (1, 2) and set(each.isrs) == {1, 2} for each in found)
