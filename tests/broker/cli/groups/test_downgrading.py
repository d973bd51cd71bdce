"""`barnabas groups downgrade` against a broker that has the consumer protocol on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker.cli.conftest import Run, run_command
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import wait_for

SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "2",
}
NONE_LEFT = "__consumer_offsets has 0 records of key versions above 2, and 2 of others."


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with a topic."""
    directory: Path = tmp_path_factory.mktemp("modern")
    with running_node(directory, SETTINGS) as node:
        with Wire(port_of(node)) as wire:
            wire.create_topic("t", partitions=2)
        yield f"127.0.0.1:{port_of(node)}"


@pytest.fixture
def group(bootstrap: str) -> Iterator[Consumer]:
    """A member of the group g that has committed two offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "group.protocol": "consumer",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["t"])

    def assignment() -> list[TopicPartition]:
        consumer.poll(0.05)
        return list(consumer.assignment())

    wait_for("an assignment of both partitions", assignment, until=lambda it: len(it) == 2)
    offsets = [TopicPartition("t", number, 0) for number in range(2)]
    consumer.commit(offsets=offsets, asynchronous=False)
    yield consumer
    consumer.close()


@pytest.fixture
def run(bootstrap: str) -> Run:
    """Run a client command against the broker of this module."""

    def against_broker(*args: str, fails: int = 0) -> object:
        return run_command(*args, bootstrap=bootstrap, fails=fails)

    return against_broker  # type: ignore[return-value]


def test_a_group_is_rewritten_when_its_members_have_gone(run: Run, group: Consumer) -> None:
    """Refused before; then only its offsets are left, in records that all can read."""
    refused = run("groups", "downgrade", "g", fails=1)
    assert "group g has members: stop them first" in refused.stderr
    group.close()
    done = run("groups", "downgrade", "--all-groups")
    assert done.stdout.splitlines() == ["Downgraded group g.", NONE_LEFT]
    listed = {each["group"]: each["type"] for each in run("groups", "list", "--output=json").json()}
    assert listed == {"g": "Classic"}
    rows = run("groups", "describe", "g", "--output=json").json()
    assert [row["committed"] for row in rows] == [0, 0]
    again = run("groups", "downgrade", "g", fails=1)
    assert "there is no group g of the consumer protocol" in again.stderr
