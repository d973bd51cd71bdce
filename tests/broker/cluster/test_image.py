"""The image: one immutable value, changed by making the next one."""

from uuid import UUID

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_kafka.ids import TopicPartition

STATE = PartitionState((1,), (1,), 1, 0, 1)


def topic(name: str, number: int, partitions: int = 1) -> TopicImage:
    """A topic with an id that is easy to read."""
    return TopicImage(name, UUID(int=number), (STATE,) * partitions)


def test_topics_are_found_by_name_by_id_and_by_partition() -> None:
    """What does not exist is None, also a partition below zero."""
    image = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 7, 2),))
    assert image.topic("a") == image.topic_by_id(UUID(int=7)) == topic("a", 7, 2)
    assert image.partition(TopicPartition("a", 1)) == STATE
    assert image.topic("b") is image.topic_by_id(UUID(int=8)) is None
    for missing in (("a", 2), ("a", -1), ("b", 0)):
        assert image.partition(TopicPartition(*missing)) is None


def test_each_change_is_a_new_version_and_leaves_the_old_image() -> None:
    """A handler that took an image keeps a consistent view for as long as it likes."""
    first = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 1), topic("b", 2)))
    second = first.with_changes(put=(topic("a", 3),), remove=frozenset({"b"}))
    assert (first.version, second.version) == (1, 2)
    assert sorted(first.topics) == ["a", "b"]
    assert sorted(second.topics) == ["a"]
    assert second.topic_ids == {UUID(int=3): "a"}


def test_parts_that_are_not_named_are_shared() -> None:
    """Changing the brokers of a large cluster does not copy its topics."""
    first = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 1),))
    second = first.with_changes(brokers={1: BrokerRegistration(1, ())}, controller_id=1)
    assert second.topics is first.topics
    assert second.controller_id == 1
    assert first.brokers == {}


def test_a_broker_is_reached_by_listener() -> None:
    """Clients of one listener must never be sent to another."""
    broker = BrokerRegistration(1, (Endpoint("A", "h", 1), Endpoint("B", "h", 2)))
    assert broker.endpoint("B") == Endpoint("B", "h", 2)
    assert broker.endpoint("C") is None


def test_topics_without_ids_are_found_by_name_only() -> None:
    """Controllers before 2.8 give topics none; what is known later is not another topic."""
    image = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 0), topic("b", 0)))
    assert image.topic_ids == {}
    assert image.topic_by_id(UUID(int=0)) is None
    image = image.with_changes(put=(topic("a", 7),), remove=frozenset({"b"}))
    assert image.topic_ids == {UUID(int=7): "a"}
    assert topic("a", 7).is_same_as(UUID(int=0))
    assert topic("a", 0).is_same_as(UUID(int=7))
    assert not topic("a", 7).is_same_as(UUID(int=8))
