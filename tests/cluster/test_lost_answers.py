"""A message between the controller and ZooKeeper is lost while a leader changes its ISR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.cluster.load import Writer, read_all
from tests.cluster.running import Cluster, move_controller, on_record
from tests.cluster.zookeeper_proxy import Lost, ZooKeeperProxy
from tests.waiting import ANSWER, seconds

SETTINGS: Final = {"zookeeper.session.timeout.ms": "40000", "replica.lag.time.max.ms": "4000"}
"""A follower that stands still leaves the ISR long before it is taken for dead."""

MORE: Final = 200
"""How many further records show that a partition takes them: some were sent after the others."""


@pytest.fixture(scope="module")
def proxy() -> Iterator[ZooKeeperProxy]:
    """Between all brokers and their ZooKeeper."""
    with ZooKeeperProxy() as listening:
        yield listening


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory, proxy: ZooKeeperProxy) -> Iterator[Cluster]:
    """Three brokers that know ZooKeeper by the address of the proxy, for the module."""
    directory = tmp_path_factory.mktemp("lost-answers")
    settings = {**SETTINGS, "zookeeper.connect": proxy.connect}
    cluster = Cluster(directory, settings=settings)
    host, _, port = cluster.zookeeper.connect.partition(":")
    proxy.target = host, int(port)
    with cluster:
        yield cluster


@pytest.mark.parametrize("lost", Lost)
@pytest.mark.parametrize("leader_is_controller", [False, True])
def test_the_isr_changes_although_a_message_is_lost(
    cluster: Cluster, proxy: ZooKeeperProxy, topic: str, lost: Lost, leader_is_controller: bool
) -> None:
    """It shrinks and grows, and acks=all goes on: whether or not ZooKeeper made the change."""
    cluster.create(topic)
    leader = cluster.leader(topic)
    others = [broker for broker in cluster.brokers if broker != leader]
    with on_record(cluster) as znodes:
        move_controller(cluster, znodes, *([leader] if leader_is_controller else others[:1]))
    cluster.known_controller()
    path = f"/brokers/topics/{topic}/partitions/0/state"
    slow = others[1]
    with Writer(cluster.bootstrap, topic, topic, 1) as writer:
        writer.wait_for_more(MORE)
        shrinks = proxy.lose(lost, path)
        with cluster.frozen(slow):
            assert shrinks.wait(seconds(ANSWER))
            wait_for_isr(cluster, topic, leader, others[0])
            writer.wait_for_more(MORE)
            grows = proxy.lose(lost, path)
        assert grows.wait(seconds(ANSWER))
        wait_for_isr(cluster, topic, *cluster.brokers)
        writer.wait_for_more(MORE)
    sent = [send.value for send in writer.finish()]
    polls = read_all(cluster.bootstrap, topic, 1, expected=len(sent))
    assert [value for poll in polls for _, value in poll.records] == sent
    assert cluster.leader(topic) == leader


def wait_for_isr(cluster: Cluster, topic: str, *brokers: int) -> None:
    """Wait until these brokers are in sync, as each broker that is among them answers."""
    wanted = tuple(sorted(brokers))
    for broker in wanted:
        cluster.wait_for_leadership(
            f"the in-sync replicas {wanted} in the metadata of broker {broker}",
            topic,
            lambda found: found[0][1] == wanted,
            cluster.brokers[broker].bootstrap,
        )
