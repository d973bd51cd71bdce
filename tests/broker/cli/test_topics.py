"""`barnabas topics`."""

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run


def described(run: Run, name: str) -> dict[str, object]:
    """The topic as `describe` shows it to programs."""
    (topic,) = run("topics", "describe", name, "--output", "json").json()
    assert isinstance(topic, dict)
    return topic


def test_the_life_of_a_topic(run: Run, kafka_broker: Broker) -> None:
    """Create, see, grow, set, unset, delete."""
    created = run("topics", "create", "life", "--partitions", "2", "--config", "retention.ms=5000")
    assert created.stdout == "Created topic life.\n"
    assert "life" in run("topics", "list").stdout.split()
    topic = described(run, "life")
    node = topic["partitions"][0]["leader"]  # type: ignore[index]
    expected = [
        {"partition": number, "leader": node, "replicas": [node], "isr": [node]}
        for number in range(2)
    ]
    assert topic["partitions"] == expected
    assert topic["configs"] == {"retention.ms": "5000"}
    run("topics", "alter", "life", "--partitions", "4", "--config", "segment.bytes=9999999")
    run("topics", "alter", "life", "--delete-config", "retention.ms")
    topic = described(run, "life")
    assert topic["configs"] == {"segment.bytes": "9999999"}
    assert len(topic["partitions"]) == 4  # type: ignore[arg-type]
    assert (kafka_broker.log_dir / "life-3").is_dir()
    assert run("topics", "delete", "life").stdout == "Deleted topic life.\n"
    assert "life" not in run("topics", "list", "--output", "json").json()


def test_partitions_only_grow(run: Run, kafka_topic: str) -> None:
    """The broker's sentence says how many there are."""
    error = run("topics", "alter", kafka_topic, "--partitions", "1", fails=1).stderr
    assert error.startswith(f"Error: cannot add partitions to topic {kafka_topic}: ")
    assert error.endswith("(INVALID_PARTITIONS)\n")
    assert error.count("\n") == 1


def test_existing_and_missing_topics_fail_without_the_if_options(
    run: Run, kafka_topic: str
) -> None:
    """Scripts that run twice use the flags; without them a second run is noticed."""
    assert "TOPIC_ALREADY_EXISTS" in run("topics", "create", kafka_topic, fails=1).stderr
    run("topics", "create", kafka_topic, "--if-not-exists")
    assert "UNKNOWN_TOPIC_OR_PART" in run("topics", "delete", "missing", fails=1).stderr
    run("topics", "delete", "missing", "--if-exists")
    assert "UNKNOWN_TOPIC_OR_PART" in run("topics", "describe", "missing", fails=1).stderr


def test_several_topics_are_all_tried(run: Run) -> None:
    """One wrong name does not keep the others from being made or deleted."""
    result = run("topics", "create", "one", "wrong name", "two", fails=1)
    assert sorted(result.stdout.splitlines()) == ["Created topic one.", "Created topic two."]
    assert "wrong name" in result.stderr
    result = run("topics", "delete", "one", "missing", "two", fails=1)
    assert sorted(result.stdout.splitlines()) == ["Deleted topic one.", "Deleted topic two."]


def test_replicas_can_be_assigned(run: Run, kafka_topic: str) -> None:
    """Brokers of a partition between colons, partitions between commas."""
    node = described(run, kafka_topic)["partitions"][0]["leader"]  # type: ignore[index]
    run("topics", "create", "assigned", "--replica-assignment", f"{node},{node},{node}")
    assert len(described(run, "assigned")["partitions"]) == 3  # type: ignore[arg-type]
    run("topics", "alter", "assigned", "--partitions", "4", "--replica-assignment", f"{node}")
    error = run("topics", "create", "no", "--replica-assignment", f"{node}:{node}", fails=1).stderr
    assert "INVALID_REPLICA_ASSIGNMENT" in error
    run("topics", "delete", "assigned")


def test_validation_creates_nothing(run: Run) -> None:
    """The broker checks and leaves it at that."""
    assert "Could create" in run("topics", "create", "dry", "--validate-only").stdout
    assert "dry" not in run("topics", "list").stdout.split()
    error = run("topics", "create", "dry", "--validate-only", "--config", "x=y", fails=1).stderr
    assert "INVALID_CONFIG" in error


@pytest.mark.parametrize(
    "args",
    [
        ("create",),
        ("create", "t", "--partitions", "x"),
        ("create", "t", "--partitions", "1", "--replica-assignment", "0"),
        ("create", "t", "--replica-assignment", "0:a"),
        ("create", "t", "--config", "retention.ms"),
        ("alter", "t"),
        ("alter", "t", "--replica-assignment", "0"),
        ("frobnicate",),
    ],
)
def test_wrong_usage_is_code_2_and_tries_nothing(run: Run, args: tuple[str, ...]) -> None:
    """A script can tell its own mistake from the cluster's answer."""
    run("topics", *args, fails=2)
    assert "t" not in run("topics", "list").stdout.split()


@pytest.mark.kafka_topic(partitions=2, config={"cleanup.policy": "compact"})
def test_tables_are_for_people(run: Run, kafka_topic: str) -> None:
    """One line about the topic, one per partition."""
    first, heading, *rows = run("topics", "describe", kafka_topic).stdout.splitlines()
    assert first.startswith(f"topic {kafka_topic}  id ")
    assert first.endswith("partitions 2  replicas 1  settings cleanup.policy=compact")
    assert heading.split() == ["partition", "leader", "replicas", "isr"]
    assert [row.split()[0] for row in rows] == ["0", "1"]


def test_filters_show_only_partitions_in_trouble(run: Run, kafka_topic: str) -> None:
    """On a healthy broker there are none."""
    for option in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert run("topics", "describe", option, "--output", "json").json() == []
    names = run("topics", "list", "--exclude-internal").stdout.split()
    assert kafka_topic in names
