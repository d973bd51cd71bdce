"""A topic's settings in the shapes the hot paths use: one object per topic, made anew on change."""

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.validator import ProduceRules
from barnabas_kafka.settings import topic as keys
from barnabas_kafka.settings.topic import TopicSettings


class TopicRules:
    """What appending to and reading from a topic depends on; immutable but for its cache."""

    __slots__ = (
        "_produce_rules",
        "compression_type",
        "down_conversion",
        "log_config",
        "min_in_sync_replicas",
        "settings",
    )

    def __init__(self, settings: TopicSettings) -> None:
        self.settings = settings
        self.log_config = LogConfig.from_settings(settings)
        self.min_in_sync_replicas = settings[keys.MIN_INSYNC_REPLICAS]
        self.compression_type = settings[keys.COMPRESSION_TYPE]
        self.down_conversion = settings[keys.MESSAGE_DOWNCONVERSION_ENABLE]
        self._produce_rules: dict[int, ProduceRules] = {}

    def produce_rules(self, version: int) -> ProduceRules:
        """What records of a Produce request of that version must keep to."""
        rules = self._produce_rules.get(version)
        if rules is None:
            rules = ProduceRules.from_settings(self.settings, request_version=version)
            self._produce_rules[version] = rules
        return rules
