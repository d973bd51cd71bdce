"""Commands of several requests, by a user that may not have all of them: the rest is shown.

Each shows what the user may see, reports on standard error what it may not, and ends with 1.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Outcome, run_command
from tests.waiting import wait_for


class Clerk:
    """A user that may read and describe `seen`, and not its settings; nothing of other topics."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        for name in ("seen", "hidden"):
            broker.create_topic(name)
        broker.create_user("clerk", consume="seen")

    def __call__(self, *words: str, fails: int = 0, user: str = "clerk") -> Outcome:
        config = ("--command-config", str(self.broker.command_config(user)))
        bootstrap = self.broker.bootstrap_servers
        return run_command(*words, *config, bootstrap=bootstrap, fails=fails)


@pytest.fixture(scope="module")
def clerk(secured_kafka_broker: Broker) -> Clerk:
    """The clerk of the session's broker."""
    return Clerk(secured_kafka_broker)


def test_a_topic_without_its_settings(clerk: Clerk) -> None:
    """Partitions and replicas need Describe, settings DescribeConfigs."""
    done = clerk("topics", "describe", "seen", fails=1)
    assert done.stdout.startswith("topic seen  id ")
    assert done.stdout.splitlines()[0].endswith("settings unknown")
    assert done.stdout.splitlines()[1].split() == ["partition", "leader", "replicas", "isr"]
    assert done.stderr.startswith("Error: cannot describe the settings of seen: ")
    assert "TOPIC_AUTHORIZATION_FAILED" in done.stderr
    (topic,) = clerk("topics", "describe", "--output", "json", fails=1).json()
    assert (topic["name"], topic["configs"]) == ("seen", None)


def test_topics_that_are_hidden_or_missing(clerk: Clerk) -> None:
    """Each that cannot be described is reported, and hides no other."""
    names = ("hidden", "seen", "missing")
    done = clerk("topics", "describe", *names, "--output", "json", fails=1)
    assert [topic["name"] for topic in done.json()] == ["seen"]
    assert "cannot describe topic hidden: " in done.stderr
    assert "cannot describe topic missing: " in done.stderr
    assert "cannot describe the settings of seen: " in done.stderr
    shown = clerk(
        "topics", "describe", "seen", "missing", "--output", "json", user="admin", fails=1
    )
    assert [topic["configs"] for topic in shown.json()] == [{}]


def test_settings_of_some_topics(clerk: Clerk) -> None:
    """Those of all topics, where one topic shows them."""
    clerk.broker.create_topic("open")
    for operation in ("describe", "describe_configs"):
        rule = ("--allow", "User:clerk", "--operation", operation, "--topic", "open")
        clerk("acls", "add", *rule, user="admin")
    done = clerk("configs", "describe", "--entity-type", "topics", "--all", fails=1)
    assert "retention.ms" in done.stdout
    assert "settings of topics seen" in done.stderr


def test_brokers_without_their_settings(clerk: Clerk) -> None:
    """Where the admin port is stands in the settings of the broker."""
    done = clerk("brokers", "describe", fails=1)
    assert "controller:  yes" in done.stdout
    assert "admin:       -" in done.stdout
    assert "cannot describe the settings of brokers" in done.stderr


def assigned(reader: Consumer) -> list[TopicPartition]:
    """What it has, once it was polled."""
    reader.poll(0)
    return reader.assignment()


def test_a_group_that_reads_a_hidden_topic(clerk: Clerk) -> None:
    """The coordinator shows what members read; where a hidden topic ends is not shown."""
    settings = {**clerk.broker.client_properties(), "group.id": "readers"}
    reader = Consumer({**settings, "auto.offset.reset": "earliest"})
    reader.subscribe(["seen", "hidden"])
    try:
        wait_for("the member's assignment", lambda: assigned(reader), until=bool)
        done = clerk("groups", "describe", "readers", "--output", "json", fails=1)
    finally:
        reader.close()
    assert {row["topic"]: row["end"] for row in done.json()} == {"hidden": None, "seen": 0}
    assert "cannot look up the end of hidden-0: " in done.stderr
