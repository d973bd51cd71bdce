"""A topic's settings: its own, the broker's behind them, and how they are described."""

import pytest

from barnabas_kafka.settings import topic
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Kind, SettingError
from barnabas_kafka.settings.topic import (
    BEHIND,
    ConfigEntry,
    ConfigSource,
    TopicSettings,
    describe_topic,
    override_problems,
    validate_override,
    validate_overrides,
)

DEFAULTS = BrokerSettings.from_mapping({})


def describe(name: str, broker: BrokerSettings, overrides: dict[str, str]) -> ConfigEntry:
    """The description of one setting."""
    return next(entry for entry in describe_topic(broker, overrides) if entry.name == name)


def test_own_settings_go_before_the_brokers() -> None:
    """Override, then the broker's setting under any of its names, then the default."""
    broker = BrokerSettings.from_mapping({"log.retention.minutes": "1", "log.segment.bytes": "99"})
    settings = TopicSettings.resolve(broker, {"segment.bytes": "50"})
    assert settings[topic.SEGMENT_BYTES] == 50
    assert settings[topic.RETENTION_MS] == 60_000
    assert settings[topic.INDEX_INTERVAL_BYTES] == 4096


def test_defaults_are_those_behind_a_default_broker() -> None:
    """A topic on a broker without settings has exactly the declared defaults."""
    settings = TopicSettings.resolve(DEFAULTS, {})
    assert {name: settings[key] for name, key in topic.KEYS.items()} == {
        name: key.default for name, key in topic.KEYS.items()
    }


def test_each_brokers_setting_takes_what_the_topics_takes() -> None:
    """The setting behind a topic's has the same type."""
    for name, behind in BEHIND.items():
        assert topic.KEYS[name].kind is behind.kind, name


def test_the_old_limit_on_timestamps() -> None:
    """One limit for both directions counts where a new one is not given."""
    settings = TopicSettings.resolve(
        DEFAULTS,
        {"message.timestamp.difference.max.ms": "9", "message.timestamp.after.max.ms": "4"},
    )
    assert settings[topic.MESSAGE_TIMESTAMP_BEFORE_MAX_MS] == 9
    assert settings[topic.MESSAGE_TIMESTAMP_AFTER_MAX_MS] == 4


def test_overrides_of_a_newer_kafka_are_passed_over() -> None:
    """A name that only a newer broker wrote does not stop this one."""
    settings = TopicSettings.resolve(DEFAULTS, {"from.the.future": "1"})
    assert settings.overrides == {"from.the.future": "1"}


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("retention.sm", "1", "retention.sm: not a setting of topics; did you mean retention.ms?"),
        ("log.retention.hours", "1", "log.retention.hours: not a setting of topics"),
        ("retention.ms", "-2", "retention.ms=-2: must be at least -1"),
        (
            "cleanup.policy",
            "shrink",
            "cleanup.policy=shrink: must be a list made of compact, delete",
        ),
    ],
)
def test_a_wrong_override_is_refused(name: str, value: str, line: str) -> None:
    """In one line, with a hint for a name that is nearly right."""
    with pytest.raises(SettingError) as refused:
        validate_override(name, value)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    "overrides",
    [
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"},
        {"remote.storage.enable": "true"},
        {"retention": "5"},
    ],
)
def test_conflicting_overrides_are_refused(overrides: dict[str, str]) -> None:
    """Overrides are checked as a whole too."""
    with pytest.raises(SettingError):
        validate_overrides(DEFAULTS, overrides)


def test_good_overrides_give_the_settings() -> None:
    """The check returns what it worked out."""
    assert validate_overrides(DEFAULTS, {"retention.ms": "-1"})[topic.RETENTION_MS] == -1


def test_description_of_an_override() -> None:
    """All that was said about it, strongest first."""
    broker = BrokerSettings.from_mapping({"log.retention.ms": "1"})
    entry = describe("retention.ms", broker, {"retention.ms": "5"})
    assert (entry.value, entry.source, entry.type) == ("5", ConfigSource.TOPIC, Kind.LONG)
    assert [(each.name, each.value, each.source.name) for each in entry.synonyms] == [
        ("retention.ms", "5", "TOPIC"),
        ("log.retention.ms", "1", "STATIC_BROKER"),
        ("log.retention.hours", "168", "DEFAULT"),
    ]


def test_description_of_a_default() -> None:
    """The broker's default is its source, as Apache Kafka answers."""
    entry = describe("segment.bytes", DEFAULTS, {})
    assert entry.is_default
    assert not entry.read_only
    assert [each.name for each in entry.synonyms] == ["log.segment.bytes"]


def test_description_of_what_only_topics_have() -> None:
    """No broker setting stands behind it."""
    entry = describe("follower.replication.throttled.replicas", DEFAULTS, {})
    assert (entry.value, entry.source, entry.synonyms) == ("", ConfigSource.DEFAULT, ())


def test_all_that_is_wrong_with_overrides_is_reported_at_once() -> None:
    """What contradicts a wrong value comes when that one is right."""
    lags = {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}
    wrong = {"retention.msx": "1", "segment.bytes": "many", **lags}
    assert [each.key for each in override_problems(DEFAULTS, wrong)] == [
        "retention.msx",
        "segment.bytes",
    ]
    assert [each.key for each in override_problems(DEFAULTS, lags)] == ["min.compaction.lag.ms"]
    assert override_problems(DEFAULTS, {"retention.ms": "-1"}) == []
