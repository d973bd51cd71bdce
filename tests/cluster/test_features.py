"""The newest protocols of groups and transactions: all brokers of a cluster offer them, or none."""

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.clients.java_team import Has, Team
from tests.clients.wire import Wire
from tests.cluster.load import meet
from tests.cluster.running import Cluster, move_controller
from tests.waiting import SETTLE, seconds

RELEASE = "4.4.0"
PARTITIONS = 6
ROUND = 60
CONSUMER_GROUP_HEARTBEAT = 68
END_TXN = 26
OWN_EPOCH = 5
"""The version of EndTxn from which on each transaction has an epoch of its own (KIP-890)."""

Offer = tuple[dict[int, tuple[int, int]], dict[str, int], int]
"""Versions by API, features in force, and the epoch of these."""


def offered(bootstrap: str) -> Offer:
    """What a broker says that it can do."""
    with Wire(bootstrap) as wire:
        request = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
        answer = wire.ask(request, ApiVersionsResponse, 3)
    versions = {it.api_key: (it.min_version, it.max_version) for it in answer.api_keys}
    features = {it.name: it.max_version_level for it in answer.finalized_features}
    return versions, features, answer.finalized_features_epoch


def has_newest(offer: Offer) -> bool:
    """Whether the newest protocols are in it."""
    versions, _, _ = offer
    return CONSUMER_GROUP_HEARTBEAT in versions and versions[END_TXN][1] >= OWN_EPOCH


def until_all_offer_the_newest(cluster: Cluster) -> None:
    """Wait until all brokers offer the same, with the newest protocols in it."""
    cluster.wait_for(
        "the newest protocols from every broker, in the same versions",
        lambda: [offered(it.bootstrap) for it in cluster.brokers.values()],
        until=lambda found: has_newest(found[0]) and all(it == found[0] for it in found),
    )


def test_every_broker_offers_the_same(cluster: Cluster, znodes: KazooClient) -> None:
    """Whether or not it is the controller, and whoever is the controller next."""
    until_all_offer_the_newest(cluster)
    before = cluster.known_controller()
    move_controller(cluster, znodes, *({*cluster.brokers} - {before}))
    cluster.wait_for(
        "another controller in every broker's metadata",
        cluster.controllers,
        until=lambda found: len(found) == 1 and not found & {before, -1},
    )
    until_all_offer_the_newest(cluster)


@pytest.mark.jvm
def test_consumers_of_the_new_protocol_while_all_brokers_restart(
    cluster: Cluster, topic: str
) -> None:
    """One broker after the other, so that coordinators move: nothing is lost or read twice."""
    cluster.create(topic, PARTITIONS)
    until_all_offer_the_newest(cluster)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    sent = 0
    with Team(cluster.bootstrap, RELEASE) as team:

        def go_on() -> None:
            nonlocal sent
            for number in range(PARTITIONS):
                producer.produce(topic, b"first", partition=number)
            meet(producer)
            for number in range(ROUND):
                producer.produce(topic, b"value", partition=number % PARTITIONS)
            assert producer.flush(seconds(SETTLE)) == 0
            sent += PARTITIONS + ROUND
            team.until(lambda has: are_shared(has) and team.seen >= sent)

        for name in ("one", "two"):
            team.start(name, topic, "consumer", topic)
        go_on()
        for broker in cluster.brokers.values():
            broker.stop()
            go_on()
            broker.start()
            cluster.until_whole(topic)
            go_on()
        assert team.seen == sent


def are_shared(has: Has) -> bool:
    """Whether each of two consumers has its half of the partitions."""
    return [len(partitions) for partitions in has.values()] == [PARTITIONS // 2] * 2
