"""A listener for the controller: what it decides is heard of where clients take all there is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import pytest
from kazoo.client import KazooClient

from tests.cluster.metrics import SETTINGS, metric
from tests.cluster.running import Cluster, Leadership, move_controller
from tests.waiting import ANSWER, seconds

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
    move_controller(cluster, znodes, 0)
    cluster.wait_for(
        "connections of the controller to both other brokers",
        lambda: [connections(cluster, broker, CONTROLLER) for broker in (1, 2)],
        until=all,
    )
    others = [cluster.address(broker, BROKERS) for broker in (1, 2)]
    for address in others:
        cluster.leadership("led", address)
    with ExitStack() as held:
        limit_s = seconds(ANSWER)
        for broker in cluster.brokers:
            host, _, port = cluster.address(broker).rpartition(":")
            for _ in range(CONNECTIONS + 10):
                held.enter_context(socket.create_connection((host, int(port)), timeout=limit_s))
        for broker in cluster.brokers:
            cluster.wait_for(
                f"{CONNECTIONS} connections to broker {broker}",
                partial(all_connections, cluster, broker),
                until=lambda count: count >= CONNECTIONS,
            )
        cluster.brokers[0].kill()
        for address in others:
            cluster.wait_for_leadership(
                "leaders and in-sync replicas that are alive", "led", led_by_others, address
            )
    cluster.wait_for(
        "a connection of the next controller to the other broker",
        lambda: [connections(cluster, broker, CONTROLLER) for broker in (1, 2)],
        until=any,
    )


def all_connections(cluster: Cluster, broker: int) -> float:
    """How many a broker has in all; no client can connect when they are at the limit."""
    return sum(connections(cluster, broker, listener) for listener in range(len(LISTENERS)))


def led_by_others(found: Leadership) -> bool:
    """Whether each partition has one of the two that are left as its leader, both in sync."""
    return all(leader in (1, 2) and isr == (1, 2) for leader, isr in found)
