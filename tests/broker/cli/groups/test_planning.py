"""`barnabas groups plan`."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run
from tests.waiting import wait_for


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two consumers and a topic of seven partitions that nobody has made yet."""
    path = tmp_path / "team.json"
    path.write_text(json.dumps({"partitions": {"t": 7}, "members": {"C1": ["t"], "C2": ["t"]}}))
    return path


def test_a_team_that_does_not_exist_yet(run: Run, file: Path) -> None:
    """Nothing is asked of a broker."""
    rows = run("groups", "plan", "--file", str(file), "--assignor=range", "--output=json").json()
    assert [(row["member"], row["gets"]) for row in rows] == [
        ("C1", "t(0,1,2,3)"),
        ("C2", "t(4,5,6)"),
    ]
    less = ("--without=C1", "--assignor=roundrobin", "--output=json")
    (row,) = run("groups", "plan", "--file", str(file), *less).json()
    assert row["partitions"] == 7
    assert "C9" in run("groups", "plan", "--file", str(file), "--without=C9", *less, fails=1).stderr


def test_a_file_of_another_form_is_refused(run: Run, tmp_path: Path) -> None:
    """With what is missing."""
    file = tmp_path / "team.json"
    file.write_text('{"members": {}}')
    outcome = run("groups", "plan", "--file", str(file), "--assignor=range", fails=2)
    assert "partitions" in outcome.stderr


@pytest.mark.kafka_topic(partitions=4)
def test_a_group_and_what_would_change_hands(
    run: Run, kafka_broker: Broker, kafka_topic: str
) -> None:
    """Its only member keeps everything; a group without members has no plan."""
    group = f"group-of-{kafka_topic}"
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_broker.bootstrap_servers,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([kafka_topic])

    def assignment() -> list[TopicPartition]:
        consumer.poll(0.1)
        return list(consumer.assignment())

    wait_for("an assignment", assignment)
    plan = ("groups", "plan", group, "--assignor=sticky")
    (row,) = run(*plan, "--output=json").json()
    assert (row["gets"], row["new"], row["lost"]) == (f"{kafka_topic}(0,1,2,3)", "", "")
    assert run(*plan, "--without=reader", "--output=json").json() == []
    consumer.close()
    assert "no members" in run(*plan, fails=1).stderr
