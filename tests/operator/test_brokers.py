"""The port on a Kafka cluster, on a real broker."""

from __future__ import annotations

import pytest

from barnabas_broker.testing import Broker
from barnabas_kafka.ids import uuid_from_base64, uuid_to_base64
from barnabas_operator import brokers as port
from barnabas_operator.brokers import AdminBrokers, BrokersError


@pytest.fixture
def brokers(kafka_broker: Broker) -> AdminBrokers:
    """The port on the session's broker."""
    return AdminBrokers(kafka_broker.bootstrap_servers)


def test_the_cluster_says_who_it_is(brokers: AdminBrokers) -> None:
    """Id and brokers."""
    view = brokers.describe()
    assert len(view.cluster_id) == 22
    assert len(view.broker_ids) == 1


def test_a_topic_from_beginning_to_end(brokers: AdminBrokers) -> None:
    """Only what was set on the topic itself is its configuration."""
    brokers.create_topic("port", partitions=1, replicas=1, config={"retention.ms": "5000"})
    assert "port" in brokers.topic_names()
    brokers.grow_partitions("port", 3)
    brokers.alter_config(
        "port", put={"cleanup.policy": "compact"}, drop=frozenset({"retention.ms"})
    )
    view = brokers.topics(frozenset({"port"}))["port"]
    assert (view.partitions, view.replicas) == (3, 1)
    assert view.config == {"cleanup.policy": "compact"}
    brokers.delete_topic("port")
    assert "port" not in brokers.topic_names()
    brokers.delete_topic("port")
    assert brokers.topics(frozenset()) == {}


def test_topic_ids_are_shown_as_kafka_shows_them(brokers: AdminBrokers) -> None:
    """Of twenty, some have a character that the client library spells in another way."""
    names = frozenset(f"spelt-{number}" for number in range(20))
    for name in names:
        brokers.create_topic(name, partitions=1, replicas=1, config={})
    ids = [view.topic_id for view in brokers.topics(names).values()]
    assert [uuid_to_base64(uuid_from_base64(each)) for each in ids] == ids


def test_a_refusal_is_told_with_the_protocols_name(brokers: AdminBrokers) -> None:
    """The broker answered, so it is reachable; asking again would not help."""
    brokers.create_topic("twice", partitions=1, replicas=1, config={})
    with pytest.raises(BrokersError) as raised:
        brokers.create_topic("twice", partitions=1, replicas=1, config={})
    assert (raised.value.code, raised.value.reachable) == ("TOPIC_ALREADY_EXISTS", True)


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own errors say that nobody answered."""
    monkeypatch.setattr(port, "TIMEOUT_S", 0.5)
    with pytest.raises(BrokersError) as raised:
        AdminBrokers("127.0.0.1:1").topic_names()
    assert raised.value.reachable is False
