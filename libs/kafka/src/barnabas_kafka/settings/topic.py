"""A topic's settings: every key by name, the values one topic runs with, and their description.

A topic's value is its own (an override), else that of the broker setting behind it, else the
default. `segment.ms`, for example, comes from `log.roll.ms`, and that one from `log.roll.hours`
(Kafka's `ServerTopicConfigSynonyms`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from . import broker as broker_keys
from . import topic_keys
from .broker import BrokerSettings
from .declare import LONG_MAX
from .definitions import Key, SettingError
from .describe import ConfigEntry as ConfigEntry
from .describe import ConfigSource as ConfigSource
from .describe import ConfigSynonym as ConfigSynonym
from .describe import broker_synonyms
from .describe import describe_broker as describe_broker
from .old_names import nearest_name
from .topic_keys import *

T = TypeVar("T")

KEYS: Final[Mapping[str, Key[Any]]] = {
    key.name: key for key in vars(topic_keys).values() if isinstance(key, Key)
}

# The broker setting that applies where the topic has none of its own.
BEHIND: Final[Mapping[str, Key[Any]]] = {
    "segment.bytes": broker_keys.LOG_SEGMENT_BYTES,
    "segment.ms": broker_keys.LOG_ROLL_MS,
    "segment.jitter.ms": broker_keys.LOG_ROLL_JITTER_MS,
    "segment.index.bytes": broker_keys.LOG_INDEX_SIZE_MAX_BYTES,
    "flush.messages": broker_keys.LOG_FLUSH_INTERVAL_MESSAGES,
    "flush.ms": broker_keys.LOG_FLUSH_INTERVAL_MS,
    "retention.bytes": broker_keys.LOG_RETENTION_BYTES,
    "retention.ms": broker_keys.LOG_RETENTION_MS,
    "max.message.bytes": broker_keys.MESSAGE_MAX_BYTES,
    "index.interval.bytes": broker_keys.LOG_INDEX_INTERVAL_BYTES,
    "delete.retention.ms": broker_keys.LOG_CLEANER_DELETE_RETENTION_MS,
    "min.compaction.lag.ms": broker_keys.LOG_CLEANER_MIN_COMPACTION_LAG_MS,
    "max.compaction.lag.ms": broker_keys.LOG_CLEANER_MAX_COMPACTION_LAG_MS,
    "file.delete.delay.ms": broker_keys.LOG_SEGMENT_DELETE_DELAY_MS,
    "min.cleanable.dirty.ratio": broker_keys.LOG_CLEANER_MIN_CLEANABLE_RATIO,
    "cleanup.policy": broker_keys.LOG_CLEANUP_POLICY,
    "unclean.leader.election.enable": broker_keys.UNCLEAN_LEADER_ELECTION_ENABLE,
    "min.insync.replicas": broker_keys.MIN_INSYNC_REPLICAS,
    "compression.type": broker_keys.COMPRESSION_TYPE,
    "compression.gzip.level": broker_keys.COMPRESSION_GZIP_LEVEL,
    "compression.lz4.level": broker_keys.COMPRESSION_LZ4_LEVEL,
    "compression.zstd.level": broker_keys.COMPRESSION_ZSTD_LEVEL,
    "preallocate": broker_keys.LOG_PREALLOCATE,
    "message.format.version": broker_keys.LOG_MESSAGE_FORMAT_VERSION,
    "message.timestamp.type": broker_keys.LOG_MESSAGE_TIMESTAMP_TYPE,
    "message.timestamp.difference.max.ms": broker_keys.LOG_MESSAGE_TIMESTAMP_DIFFERENCE_MAX_MS,
    "message.timestamp.before.max.ms": broker_keys.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    "message.timestamp.after.max.ms": broker_keys.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    "message.downconversion.enable": broker_keys.LOG_MESSAGE_DOWNCONVERSION_ENABLE,
    "local.retention.ms": broker_keys.LOG_LOCAL_RETENTION_MS,
    "local.retention.bytes": broker_keys.LOG_LOCAL_RETENTION_BYTES,
}


class TopicSettings:
    """The settings of one topic on one broker, immutable."""

    __slots__ = ("_values", "overrides")

    def __init__(self, values: Mapping[str, Any], overrides: Mapping[str, str]) -> None:
        self._values: Final = values
        self.overrides: Final = dict(overrides)

    @classmethod
    def resolve(cls, broker: BrokerSettings, overrides: Mapping[str, str]) -> TopicSettings:
        """A topic's settings; overrides under names unknown here (of a newer Kafka) are passed
        over.

        Raises SettingError for an override whose value is malformed.
        """
        values = {
            name: key.parse(overrides[name]) if name in overrides else _inherited(key, broker)
            for name, key in KEYS.items()
        }
        # The old single limit counts where a new one is left at its default.
        for name in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"):
            if values[name] == LONG_MAX:
                values[name] = values["message.timestamp.difference.max.ms"]
        return cls(values, overrides)

    def __getitem__(self, key: Key[T]) -> T:
        """The value in effect."""
        return cast("T", self._values[key.name])


def _inherited(key: Key[Any], broker: BrokerSettings) -> Any:
    behind = BEHIND.get(key.name)
    value = None if behind is None else broker[behind]
    return key.default if value is None else value


def validate_override(name: str, value: str) -> None:
    """Check one override; raises SettingError for an unknown name or a bad value."""
    key = KEYS.get(name)
    if key is None:
        near = nearest_name(name, KEYS)
        hint = f"; did you mean {near}?" if near else ""
        raise SettingError(name, None, f"not a setting of topics{hint}")
    key.parse(value)


def validate_overrides(broker: BrokerSettings, overrides: Mapping[str, str]) -> TopicSettings:
    """Check a topic's overrides alone and together (`LogConfig.validate`); returns the settings.

    Raises SettingError.
    """
    for name, value in overrides.items():
        validate_override(name, value)
    settings = TopicSettings.resolve(broker, overrides)
    for problem in _contradictions(settings):
        raise problem
    return settings


def override_problems(broker: BrokerSettings, overrides: Mapping[str, str]) -> list[SettingError]:
    """Everything for which `validate_overrides` refuses overrides.

    What contradicts a wrong value is not known yet.
    """
    problems = []
    for name, value in overrides.items():
        try:
            validate_override(name, value)
        except SettingError as error:
            problems.append(error)
    return problems or list(_contradictions(TopicSettings.resolve(broker, overrides)))


def _contradictions(settings: TopicSettings) -> Iterator[SettingError]:
    least, most = topic_keys.MIN_COMPACTION_LAG_MS, topic_keys.MAX_COMPACTION_LAG_MS
    if settings[least] > settings[most]:
        allowed = f"must be at most {most.name} ({settings[most]})"
        yield SettingError(least.name, str(settings[least]), allowed)
    if settings[topic_keys.REMOTE_STORAGE_ENABLE]:
        key = topic_keys.REMOTE_STORAGE_ENABLE
        yield SettingError(key.name, settings.overrides[key.name], "tiered storage is not offered")


def describe_topic(broker: BrokerSettings, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    """Every setting of a topic as DescribeConfigs shows it."""
    settings = TopicSettings.resolve(broker, overrides)
    return [_describe(key, settings, broker) for key in KEYS.values()]


def _describe(key: Key[Any], settings: TopicSettings, broker: BrokerSettings) -> ConfigEntry:
    value = key.format(settings[key])
    synonyms = []
    if key.name in settings.overrides:
        synonyms.append(ConfigSynonym(key.name, value, ConfigSource.TOPIC))
    if key.name in BEHIND:
        synonyms.extend(broker_synonyms(BEHIND[key.name].name, broker))
    return ConfigEntry(
        name=key.name,
        value=value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=False,
        read_only=False,
        synonyms=tuple(synonyms),
        type=key.kind,
        doc=key.doc,
    )
