"""The coordinators' topics: rows of docs/operations/troubleshooting.md.

Each test provokes what its row quotes, and ends with the remedy at work.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import consumer, fill
from tests.clients.troubles import admin, create, outcome, send, until_logged
from tests.clients.troubleshooting import Row, rows
from tests.faults.disk import FaultyDisk
from tests.faults.loading import GROUPS_LOG, readiness, settings, start_unreadable, until_ready
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds

CONSOLE_PRODUCER: Final = "kafka.tools.ConsoleProducer"
PATIENT: Final = ("--request-timeout-ms", "60000")
"""By itself that tool waits for 1.5 s, and gives up after three more tries."""
TOPIC: Final = "orders"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """A broker with a topic."""
    with Barnabas(tmp_path_factory.mktemp("coordinators"), settings()) as started:
        assert create(started, TOPIC) is None
        yield started


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Iterator[Row]:
    """The row that the test is named after; all it quotes must be seen."""
    wanted = request.node.name.removeprefix("test_").replace("_", "-")
    found = next(each for each in rows() if each.id == wanted)
    yield found
    assert not found.unseen


def altered(broker: Barnabas, name: str, value: str) -> str | None:
    """The error of changing a setting of the groups' topic, or None."""
    resource = ConfigResource(ResourceType.TOPIC, "__consumer_offsets")
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(entry)
    client = admin(broker)
    (future,) = client.incremental_alter_configs([resource]).values()
    return outcome(future)


def test_internal_topic(broker: Barnabas, row: Row) -> None:
    """Offsets are committed, not produced."""
    member = consumer(broker.bootstrap, **{"group.id": "committing"})
    member.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    row.seen(send(broker, "__consumer_offsets", key=b"k"))
    console = ("--bootstrap-server", broker.bootstrap, "--topic", "__consumer_offsets", *PATIENT)
    row.seen(run_tool(CONSOLE_PRODUCER, *console, input="x\n").stderr)
    (found,) = member.committed([TopicPartition(TOPIC, 0)], timeout=seconds(ANSWER))
    assert found.offset == 1
    member.close()


def test_internal_topic_policy(broker: Barnabas, row: Row) -> None:
    """Other settings of theirs can be changed."""
    member = consumer(broker.bootstrap, **{"group.id": "policy"})
    member.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    member.close()
    row.seen(altered(broker, "cleanup.policy", "delete"))
    assert altered(broker, "segment.bytes", "1048576") is None


def test_coordinator_loading(tmp_path: Path, row: Row) -> None:
    """A group waits until its log can be read; the broker is not restarted."""
    with FaultyDisk(tmp_path / "kafka-logs" / GROUPS_LOG) as disk:
        broker = Barnabas(tmp_path, settings(), disk.environment)
        with broker:
            fill(broker.bootstrap, "t", 1)
            member = consumer(broker.bootstrap, **{"group.id": "waiting"})
            member.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            broker.stop()
            start_unreadable(broker, disk, errno.EMFILE)
            row.seen(
                until_logged(broker, "Failed to load: partition=__consumer_offsets-0 retry in")
            )
            row.seen(f"/ready: {readiness(broker)[1]}")
            disk.heal()
            until_ready(broker)
            (found,) = member.committed([TopicPartition("t", 0)], timeout=seconds(ANSWER))
            assert found.offset == 1
            member.close()
