"""Pipelines of secured clusters on a laptop: `barnabas local` gives them their users' files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas_operator.local.view import PipelineView
from tests.operator import examples
from tests.operator.local.laptop import Laptop, bare, pipeline, secured_cluster, topic
from tests.waiting import ANSWER, START, seconds, wait_for

PIPELINE = "packages-to-parquet"
READER = "archivist"
ROLES = {"roles": [{"type": "consumer", "topic": "packages"}]}


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    """A state directory and a file; what was started is stopped."""
    laptop = Laptop(tmp_path)
    yield laptop
    laptop.down()


def send(laptop: Laptop, count: int) -> None:
    """Send records as the person at the machine."""
    settings = json.loads((laptop.state.user("admin") / "librdkafka.json").read_text())
    producer = Producer({**settings, "log_level": 0})
    for number in range(count):
        producer.produce("packages", str(number))
    assert producer.flush(seconds(ANSWER)) == 0


def archived(laptop: Laptop, rows: int) -> PipelineView:
    """The pipeline, once it has written so many rows."""
    return wait_for(
        "the records in files",
        lambda: laptop.look().pipelines[PIPELINE],
        until=lambda it: it.status.rows == rows,
        within=2 * START,
    )


def test_a_pipeline_connects_as_its_user(laptop: Laptop) -> None:
    """It may what its user may: without its role it says which, and runs once the file has it."""
    wanted = (secured_cluster(), topic())
    seen = laptop.up(*wanted, bare(examples.user(READER)), pipeline(user=READER))
    send(laptop, 20)
    (ready, *_) = seen.pipelines[PIPELINE].status.conditions
    assert ready.status == "False"
    assert "it needs the roles {type: consumer, topic: packages}" in ready.message
    laptop.up(*wanted, bare(examples.user(READER, authorization=ROLES)), pipeline(user=READER))
    found = archived(laptop, 20)
    assert list((found.directory / "data" / "packages").glob("batch=*/*.parquet"))
    password = (laptop.state.user(READER) / "password").read_text()
    log_text = (found.directory / "pipeline.log").read_text()
    assert password not in log_text


def test_the_person_at_the_machine_runs_a_pipeline_without_a_user(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a file that `--secure` secures. What the shell says of other brokers is none of its."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("BARNABAS_KAFKA_USER", "/nonexistent")
    laptop.up(secured_cluster(), topic(), pipeline())
    send(laptop, 5)
    archived(laptop, 5)
