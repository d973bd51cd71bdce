"""A topic's settings in the shapes the hot paths use: one object per topic, replaced on change.

Here is the one place that decides that clients may not produce to an internal topic
(`ReplicaManager.appendToLocalLog`): each route of a Produce request asks for the topic's rules
before it can validate a batch, and an internal topic has none. Coordinators, transaction markers
and followers append without them. The check lies behind the cache of rules that every route looks
into anyway: a topic that clients may write to reaches it once per request version.
"""

from typing import Final

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.producer_state import IDS_MAX
from barnabas_broker.log.validator import ProduceRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.records.batch import TimestampType
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.settings import topic as keys
from barnabas_kafka.settings.topic import TopicSettings

_CODECS: Final[dict[str, Codec | None]] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class TopicRules:
    """What appending to and reading from a topic depends on; immutable but for its cache."""

    __slots__ = (
        "_produce_rules",
        "compression_type",
        "down_conversion",
        "follower_throttled",
        "internal",
        "leader_throttled",
        "log_config",
        "min_in_sync_replicas",
        "settings",
        "topic",
    )

    def __init__(
        self,
        settings: TopicSettings,
        *,
        topic: str,
        internal: bool,
        producer_id_expiration_ms: int,
        producer_ids_max: int = IDS_MAX,
    ) -> None:
        self.settings = settings
        self.topic = topic
        #: whether only coordinators append to the topic
        self.internal = internal
        self.log_config = LogConfig.from_settings(
            settings,
            producer_id_expiration_ms=producer_id_expiration_ms,
            producer_ids_max=producer_ids_max,
        )
        self.min_in_sync_replicas = settings[keys.MIN_INSYNC_REPLICAS]
        self.compression_type = settings[keys.COMPRESSION_TYPE]
        self.down_conversion = settings[keys.MESSAGE_DOWNCONVERSION_ENABLE]
        #: replicas whose traffic is throttled: `*`, or pairs of a partition and a broker
        self.leader_throttled = settings[keys.LEADER_REPLICATION_THROTTLED_REPLICAS]
        self.follower_throttled = settings[keys.FOLLOWER_REPLICATION_THROTTLED_REPLICAS]
        self._produce_rules: dict[int, ProduceRules] = {}

    def produce_rules(self, version: int) -> ProduceRules:
        """What records of a Produce request of that version must keep to.

        Raises KafkaError INVALID_TOPIC_EXCEPTION where clients may not append to the topic. No
        client may, whatever its id: Apache's broker exempts the id `__admin_client`.
        """
        rules = self._produce_rules.get(version)
        if rules is None:
            if self.internal:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Cannot append to internal topic {self.topic}",
                )
            rules = _produce_rules(self.settings, version)
            self._produce_rules[version] = rules
        return rules


def _produce_rules(settings: TopicSettings, version: int) -> ProduceRules:
    codec = settings[keys.COMPRESSION_TYPE]
    append_time = settings[keys.MESSAGE_TIMESTAMP_TYPE] == "LogAppendTime"
    return ProduceRules(
        compact="compact" in settings[keys.CLEANUP_POLICY],
        max_message_bytes=settings[keys.MAX_MESSAGE_BYTES],
        timestamp_type=TimestampType.APPEND if append_time else TimestampType.CREATE,
        timestamp_before_max_ms=settings[keys.MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
        timestamp_after_max_ms=settings[keys.MESSAGE_TIMESTAMP_AFTER_MAX_MS],
        target_codec=_CODECS[codec],
        request_version=version,
        gzip_level=settings[keys.COMPRESSION_GZIP_LEVEL],
        lz4_level=settings[keys.COMPRESSION_LZ4_LEVEL],
        zstd_level=settings[keys.COMPRESSION_ZSTD_LEVEL],
    )
