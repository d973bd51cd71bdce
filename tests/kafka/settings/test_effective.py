"""Settings that others decide are worked out in Kafka's order."""

import pytest

from barnabas_kafka.settings import broker
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key
from barnabas_kafka.settings.effective import synonyms_of

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [
        ({}, 168 * HOUR),
        ({"log.retention.hours": "1"}, HOUR),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        (
            {"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"},
            3,
        ),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.ms": "-1", "log.retention.hours": "5"}, -1),
    ],
)
def test_retention(given: dict[str, str], milliseconds: int) -> None:
    """Milliseconds go before minutes, and minutes before hours; -1 of any unit is for ever."""
    assert BrokerSettings.from_mapping(given)[broker.LOG_RETENTION_MS] == milliseconds


@pytest.mark.parametrize(
    ("key", "given", "value"),
    [
        (broker.LOG_ROLL_MS, {"log.roll.hours": "2"}, 2 * HOUR),
        (broker.LOG_ROLL_MS, {"log.roll.hours": "2", "log.roll.ms": "5"}, 5),
        (broker.LOG_ROLL_JITTER_MS, {}, 0),
        (broker.LOG_ROLL_JITTER_MS, {"log.roll.jitter.hours": "1"}, HOUR),
        (broker.LOG_DIRS, {}, ("/tmp/kafka-logs",)),
        (broker.LOG_DIRS, {"log.dir": "/a"}, ("/a",)),
        (broker.LOG_DIRS, {"log.dir": "/a", "log.dirs": "/b, /c,"}, ("/b", "/c")),
        (broker.LOG_FLUSH_INTERVAL_MS, {"log.flush.scheduler.interval.ms": "9"}, 9),
        (broker.LOG_FLUSH_INTERVAL_MS, {"log.flush.interval.ms": "8"}, 8),
        (broker.NUM_REPLICA_ALTER_LOG_DIRS_THREADS, {"log.dirs": "/a,/b"}, 2),
        (broker.ZOOKEEPER_CONNECTION_TIMEOUT_MS, {}, 18_000),
        (broker.ADVERTISED_LISTENERS, {"listeners": "PLAINTEXT://h:1"}, "PLAINTEXT://h:1"),
        (broker.INTER_BROKER_LISTENER_NAME, {}, "PLAINTEXT"),
        (
            broker.LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
            {"log.message.timestamp.difference.max.ms": "7"},
            7,
        ),
        (
            broker.LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
            {
                "log.message.timestamp.difference.max.ms": "7",
                "log.message.timestamp.after.max.ms": "6",
            },
            6,
        ),
    ],
)
def test_values_taken_elsewhere(key: Key[object], given: dict[str, str], value: object) -> None:
    """A setting that is not given takes its value where Kafka takes it."""
    assert BrokerSettings.from_mapping(given)[key] == value


def test_names_that_mean_the_same() -> None:
    """The strongest name comes first, and most settings have one name."""
    assert synonyms_of("log.retention.hours") == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )
    assert synonyms_of("num.partitions") == ("num.partitions",)
