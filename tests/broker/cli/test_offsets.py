"""`barnabas offsets`."""

import pytest
from confluent_kafka import Producer

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.offsets import parse_moment, parse_partitions
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import ANSWER, seconds


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("latest", -1),
        ("-1", -1),
        ("earliest", -2),
        ("-2", -2),
        ("max-timestamp", -3),
        ("-3", -3),
        ("0", 0),
        ("1700000000000", 1700000000000),
        ("2023-11-14T22:13:20+00:00", 1700000000000),
        ("2023-11-14T22:13:20.5Z", 1700000000500),
    ],
)
def test_moments(text: str, number: int) -> None:
    """Words, Kafka's numbers, milliseconds and dates."""
    assert parse_moment(text) == number


@pytest.mark.parametrize("text", ["-4", "yesterday", "", "1.5"])
def test_invalid_times_are_refused(text: str) -> None:
    """Kafka's tool takes -4 and beyond for timestamps; nobody means that."""
    with pytest.raises(InputError, match="--time"):
        parse_moment(text)


def test_partitions_are_numbers_and_ranges() -> None:
    """Ranges include both ends."""
    assert parse_partitions("0,2,5-8,7") == {0, 2, 5, 6, 7, 8}
    for wrong in ("", "a", "1-", "-1", "1,,2"):
        with pytest.raises(InputError):
            parse_partitions(wrong)


@pytest.fixture
def three_moments(kafka_broker: Broker, kafka_topic: str) -> str:
    """A topic with three records in partition 0, at timestamps 1000, 3000 and 2000."""
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    for timestamp in (1000, 3000, 2000):
        producer.produce(kafka_topic, b"x", partition=0, timestamp=timestamp)
    assert producer.flush(seconds(ANSWER)) == 0
    return kafka_topic


# Records of 1970 would fall to retention whenever the broker looks.
@pytest.mark.kafka_topic(config={"retention.ms": "-1"})
@pytest.mark.parametrize(
    ("moment", "offset", "timestamp"),
    [
        ("-1", 3, None),
        ("-2", 0, None),
        ("-3", 1, 3000),
        ("1500", 1, 3000),
        ("1000", 0, 1000),
        ("9000", None, None),
    ],
)
def test_offsets_by_moment(
    run: Run, three_moments: str, moment: str, offset: int | None, timestamp: int | None
) -> None:
    """First, next, latest timestamp, and the first record as late as a moment."""
    (row,) = run("offsets", f"{three_moments}:0", "--time", moment, "--output", "json").json()
    assert (row["offset"], row["timestamp"]) == (offset, timestamp)


@pytest.mark.kafka_topic(partitions=3)
def test_plain_output_is_that_of_kafkas_tool(run: Run, kafka_topic: str) -> None:
    """Scripts split at colons; no offset is an empty field."""
    assert run("offsets", kafka_topic, "--output", "plain").stdout.split() == [
        f"{kafka_topic}:{partition}:0" for partition in range(3)
    ]
    result = run("offsets", f"{kafka_topic}:1-2", "--time", "5", "--output", "plain")
    assert result.stdout.split() == [f"{kafka_topic}:1:", f"{kafka_topic}:2:"]


def test_without_a_topic_all_are_shown(run: Run, kafka_topic: str) -> None:
    """As Kafka's tool does."""
    rows = run("offsets", "--output", "json").json()
    assert kafka_topic in {row["topic"] for row in rows}


def test_missing_topics_and_partitions_are_named(run: Run, kafka_topic: str) -> None:
    """The topic or the partition."""
    assert "no topic nowhere" in run("offsets", "nowhere", fails=1).stderr
    assert "no partition 9" in run("offsets", f"{kafka_topic}:9", fails=1).stderr
