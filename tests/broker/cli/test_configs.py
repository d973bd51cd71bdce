"""`barnabas configs`."""

from typing import Any

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import wait_for

TOPIC = ("--entity-type", "topics", "--entity-name")
BROKER = ("--entity-type", "brokers", "--entity-name")


def settings(run: Run, *args: str) -> dict[str, dict[str, Any]]:
    """The described settings by name."""
    rows = run("configs", "describe", *args, "--output", "json").json()
    return {row["name"]: row for row in rows}


def broker_id(run: Run) -> str:
    """The id of the only broker."""
    rows = run("configs", "describe", "--entity-type", "brokers", "--all", "--output", "json")
    return str(rows.json()[0]["entity"])


def test_topic_settings_are_set_and_returned_to_defaults(run: Run, kafka_topic: str) -> None:
    """Without --all only what is the topic's own is shown."""
    assert settings(run, *TOPIC, kafka_topic) == {}
    assert "--all" in run("configs", "describe", *TOPIC, kafka_topic).stdout
    change = ("--add", "retention.ms=1000", "--add", "cleanup.policy=compact")
    run("configs", "alter", *TOPIC, kafka_topic, *change)
    own = settings(run, *TOPIC, kafka_topic)
    assert {name: row["value"] for name, row in own.items()} == {
        "retention.ms": "1000",
        "cleanup.policy": "compact",
    }
    assert own["retention.ms"]["source"] == "DYNAMIC_TOPIC"
    run("configs", "alter", *TOPIC, kafka_topic, "--delete", "retention.ms")
    run("configs", "alter", *TOPIC, kafka_topic, "--append", "cleanup.policy=delete")
    assert settings(run, *TOPIC, kafka_topic)["cleanup.policy"]["value"] == "compact,delete"
    run("configs", "alter", *TOPIC, kafka_topic, "--subtract", "cleanup.policy=compact")
    every = settings(run, *TOPIC, kafka_topic, "--all")
    assert every["cleanup.policy"]["value"] == "delete"
    assert every["retention.ms"]["source"] == "DEFAULT"
    assert every["retention.ms"]["value"] == "604800000"


def test_broker_settings_change_while_it_runs(run: Run, kafka_broker: Broker) -> None:
    """A dynamic setting is shown with its source and can be taken back."""
    node = broker_id(run)
    run("configs", "alter", *BROKER, node, "--add", "message.max.bytes=2000000")
    wait_for(
        "the dynamic setting",
        lambda: settings(run, *BROKER, node),
        until=lambda found: "message.max.bytes" in found,
    )
    assert settings(run, *BROKER, node)["message.max.bytes"]["source"] == "DYNAMIC_BROKER"
    run("configs", "alter", *BROKER, node, "--delete", "message.max.bytes")
    wait_for(
        "the default of the setting",
        lambda: settings(run, *BROKER, node),
        until=lambda found: "message.max.bytes" not in found,
    )
    every = settings(run, *BROKER, node, "--all")
    assert every["log.dirs"]["source"] == "STATIC_BROKER"
    assert every["log.dirs"]["read_only"]
    assert every["delete.topic.enable"]["default"]


def test_a_refused_change_changes_nothing(run: Run, kafka_topic: str) -> None:
    """One change is all or nothing, and the reason is the broker's."""
    change = ("--add", "retention.ms=1000", "--add", "segment.bytes=none")
    error = run("configs", "alter", *TOPIC, kafka_topic, *change, fails=1).stderr
    assert "INVALID_CONFIG" in error
    assert settings(run, *TOPIC, kafka_topic) == {}
    run("configs", "alter", *TOPIC, kafka_topic, "--add", "retention.ms=7", "--validate-only")
    assert settings(run, *TOPIC, kafka_topic) == {}


def test_read_only_settings_are_refused(run: Run) -> None:
    """A change that would only take effect after a restart is not accepted in silence."""
    run("configs", "alter", *BROKER, broker_id(run), "--add", "log.dirs=/elsewhere", fails=1)


def test_wrong_usage_is_code_2(run: Run, kafka_topic: str) -> None:
    """Nothing to alter, nobody to alter it of, no kind of entity."""
    run("configs", "alter", *TOPIC, kafka_topic, fails=2)
    run("configs", "alter", "--entity-type", "topics", "--add", "a=b", fails=2)
    run("configs", "alter", *BROKER, "not-a-number", "--add", "a=b", fails=2)
    run("configs", "describe", "--entity-type", "users", fails=2)
    run("configs", "describe", fails=2)


def test_without_a_name_all_topics_are_shown(run: Run, kafka_topic: str) -> None:
    """The table then says whose setting it is."""
    run("configs", "alter", *TOPIC, kafka_topic, "--add", "retention.ms=1000")
    heading, *rows = run("configs", "describe", "--entity-type", "topics").stdout.splitlines()
    assert heading.split()[0] == "entity"
    expected = [kafka_topic, "retention.ms", "1000", "DYNAMIC_TOPIC", "false", "false"]
    assert expected in [row.split() for row in rows]


def test_a_missing_topic_is_an_error(run: Run) -> None:
    """Not an empty table."""
    assert "missing" in run("configs", "describe", *TOPIC, "missing", fails=1).stderr


@pytest.mark.parametrize("command", [["describe"], ["alter", "--add", "log.cleaner.threads=2"]])
def test_a_broker_that_is_not_there(run: Run, command: list[str]) -> None:
    """Is told at once: its settings are asked of itself, so nobody would answer."""
    reported = run("configs", *command, *BROKER, "77", fails=1).stderr
    assert reported == (
        f"Error: there is no broker 77, or it does not run; there are {broker_id(run)}\n"
    )
