"""Topics that come into being because somebody asked about them."""

from barnabas_broker.controller.internal import automatic_topic
from barnabas_broker.controller.topics import NewTopic
from barnabas_kafka.settings.broker import BrokerSettings

SETTINGS = BrokerSettings.from_mapping(
    {
        "offsets.topic.num.partitions": "7",
        "offsets.topic.segment.bytes": "4096",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
)


def test_an_ordinary_topic_has_the_brokers_defaults() -> None:
    """Nothing is said about it, so everything is decided at creation."""
    assert automatic_topic("orders", SETTINGS) == NewTopic(name="orders")


def test_the_topic_of_committed_offsets() -> None:
    """Compacted, in small segments, compressed as the coordinator writes it."""
    topic = automatic_topic("__consumer_offsets", SETTINGS)
    assert (topic.num_partitions, topic.replication_factor) == (7, 1)
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "segment.bytes": "4096",
        "compression.type": "producer",
    }


def test_offsets_have_the_replicas_that_were_asked_for() -> None:
    """Only a broker that is alone by its nature, and told nothing else, makes do with one."""
    for given, replicas in (
        ({}, 1),
        ({"offsets.topic.replication.factor": "2"}, 2),
        ({"zookeeper.connect": "zk:2181"}, 3),
    ):
        settings = BrokerSettings.from_mapping(given)
        assert automatic_topic("__consumer_offsets", settings).replication_factor == replicas


def test_the_topic_of_transactions() -> None:
    """Its state must never be lost, so no unclean leader is allowed."""
    topic = automatic_topic("__transaction_state", SETTINGS)
    assert (topic.num_partitions, topic.replication_factor) == (50, 1)
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "1",
    }
