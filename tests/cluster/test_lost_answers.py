"""A message between the controller and ZooKeeper is lost while a leader changes its ISR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import KafkaException

from tests.cluster.load import Writer, read_all
from tests.cluster.running import Cluster, controlled_by, on_record
from tests.cluster.zookeeper_proxy import Lost, ZooKeeperProxy
from tests.waiting import ANSWER, seconds, wait_for

SETTINGS: Final = {"zookeeper.session.timeout.ms": "40000", "replica.lag.time.max.ms": "4000"}
"""A follower that stands still leaves the ISR long before it is taken for dead."""


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
        wanted = [leader] if leader_is_controller else others[:1]
        wait_for(
            "the controller",
            lambda: controlled_by(znodes, *wanted) and cluster.controller() in wanted,
            retry=(KafkaException,),
            show=cluster.words,
        )
    path = f"/brokers/topics/{topic}/partitions/0/state"
    slow = others[1]
    with Writer(cluster.bootstrap, topic, topic, 1) as writer:
        wait_until_more_is_acknowledged(cluster, writer)
        shrinks = proxy.lose(lost, path)
        with cluster.frozen(slow):
            assert shrinks.wait(seconds(ANSWER))
            wait_for_isr(cluster, topic, leader, others[0])
            wait_until_more_is_acknowledged(cluster, writer)
            grows = proxy.lose(lost, path)
        assert grows.wait(seconds(ANSWER))
        wait_for_isr(cluster, topic, *cluster.brokers)
        wait_until_more_is_acknowledged(cluster, writer)
    sent = [send.value for send in writer.finish()]
    polls = read_all(cluster.bootstrap, topic, 1, expected=len(sent))
    assert [value for poll in polls for _, value in poll.records] == sent
    assert cluster.leader(topic) == leader


def wait_for_isr(cluster: Cluster, topic: str, *brokers: int) -> None:
    """Wait until these brokers are in sync, by the word of each broker that is in it."""
    wanted = tuple(sorted(brokers))

    def told() -> set[tuple[int, ...]]:
        admins = [cluster.brokers[broker].bootstrap for broker in wanted]
        return {cluster.leadership(topic, each)[0][1] for each in admins}

    wait_for(
        f"the in-sync replicas {wanted}",
        told,
        until=lambda found: found == {wanted},
        within=ANSWER,
        retry=(KafkaException,),
        show=cluster.words,
    )


def wait_until_more_is_acknowledged(cluster: Cluster, writer: Writer) -> None:
    """Wait until a record is acknowledged that was sent after others: some hundred more."""
    before = writer.acknowledged
    wait_for(
        "more acknowledged records",
        lambda: writer.acknowledged,
        until=lambda count: count > before + 200,
        within=ANSWER,
        show=cluster.words,
    )
