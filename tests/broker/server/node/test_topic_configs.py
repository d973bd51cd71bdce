"""The settings in force for a topic."""

from uuid import UUID

import pytest

from barnabas_broker.cluster.image import MetadataImage, TopicImage
from barnabas_broker.server.node.topic_configs import log_config, topic_rules
from barnabas_kafka.settings.broker import BrokerSettings

SETTINGS = BrokerSettings({"min.insync.replicas": "2", "log.segment.bytes": "1048576"})


def topic(name: str, **config: str) -> TopicImage:
    """A topic with those settings stored; underscores stand for dots."""
    stored = {key.replace("_", "."): value for key, value in config.items()}
    return TopicImage(name, UUID(int=1), (), stored)


def test_a_topic_overrides_the_broker() -> None:
    """What is not stored with the topic is the broker's."""
    assert topic_rules(SETTINGS, topic("t")).min_in_sync_replicas == 2
    assert topic_rules(SETTINGS, topic("t", min_insync_replicas="1")).min_in_sync_replicas == 1


def test_a_topic_that_is_not_in_the_image_has_the_brokers_settings() -> None:
    """Its log may lie on disk, and is opened before the topic is known."""
    image = MetadataImage(cluster_id="c").with_changes(put=(topic("t", segment_bytes="2097152"),))
    assert log_config(SETTINGS, image, "t").segment_bytes == 2097152
    assert log_config(SETTINGS, image, "other").segment_bytes == 1048576


def test_a_stored_value_that_is_not_accepted_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """It holds back neither the other settings of the topic nor the topic."""
    rules = topic_rules(SETTINGS, topic("t", retention_ms="soon", min_insync_replicas="1"))
    assert rules.min_in_sync_replicas == 1
    assert "Stored config ignored: topic=t" in caplog.text


def test_the_coordinators_topics_are_compacted(caplog: pytest.LogCaptureFixture) -> None:
    """Deleting their segments by age would lose offsets and transactions."""
    rules = topic_rules(SETTINGS, topic("__consumer_offsets", cleanup_policy="delete"))
    assert rules.log_config.compact
    assert "compacted topic: topic=__consumer_offsets cleanup.policy=delete" in caplog.text
