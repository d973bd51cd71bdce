"""The settings in force for a topic: the broker's, and those stored with the topic over them."""

import logging
from collections.abc import Mapping

from barnabas_broker.cluster.image import MetadataImage, TopicImage
from barnabas_broker.controller.topics import COMPACT, COMPACTED_TOPICS, is_internal
from barnabas_broker.log.config import LogConfig
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.topic import CLEANUP_POLICY, TopicSettings

log = logging.getLogger(__name__)


def topic_rules(settings: BrokerSettings, topic: TopicImage) -> TopicRules:
    """The rules that the partitions of a topic go by."""
    return TopicRules(
        _topic_settings(settings, topic.name, topic.config),
        topic=topic.name,
        internal=is_internal(topic.name),
        producer_id_expiration_ms=settings[keys.PRODUCER_ID_EXPIRATION_MS],
        producer_ids_max=settings[keys.BARNABAS_PRODUCER_IDS_PER_PARTITION_MAX],
    )


def log_config(settings: BrokerSettings, image: MetadataImage, topic: str) -> LogConfig:
    """The settings of the logs of a topic, which the image may not have."""
    known = image.topic(topic)
    return LogConfig.from_settings(
        _topic_settings(settings, topic, {} if known is None else known.config),
        producer_id_expiration_ms=settings[keys.PRODUCER_ID_EXPIRATION_MS],
        producer_ids_max=settings[keys.BARNABAS_PRODUCER_IDS_PER_PARTITION_MAX],
    )


def _topic_settings(
    settings: BrokerSettings, topic: str, overrides: Mapping[str, str]
) -> TopicSettings:
    """The settings of a topic; a stored value that is not accepted is left out, and logged.

    The coordinators' topics are compacted whatever is stored: under cleanup.policy=delete, which
    tools can write into ZooKeeper and Apache's brokers accept, they lose offsets and transactions.
    """
    remaining = dict(overrides)
    if topic in COMPACTED_TOPICS:
        name = CLEANUP_POLICY.name
        stored = remaining.get(name, COMPACT)
        if stored != COMPACT:
            log.error(
                "Stored config ignored for a compacted topic: topic=%s %s=%s", topic, name, stored
            )
        remaining[name] = COMPACT
    while True:
        try:
            return TopicSettings.resolve(settings, remaining)
        except SettingError as error:
            if remaining.pop(error.key, None) is None:
                raise
            log.error("Stored config ignored: topic=%s %s", topic, error)
