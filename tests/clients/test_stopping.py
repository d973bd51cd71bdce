"""A broker that stops, is killed, and starts again, with clients in the middle of something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas_kafka.protocol.messages.produce import ProduceResponse
from tests.clients import wire
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.librdkafka import fill, read_all
from tests.clients.wire import Wire
from tests.waiting import ANSWER

TOPIC = "kept"


@contextmanager
def started(directory: Path) -> Iterator[Broker]:
    """A broker of the test's own with a topic in it."""
    with broker_under_test(directory, {"broker.id": "0"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(60)
        yield broker


def values(broker: Broker) -> list[str | bytes | None]:
    """What the topic holds."""
    return [record.value() for record in read_all(broker.bootstrap, TOPIC)]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_acknowledged_records_survive(tmp_path: Path, end: str) -> None:
    """SIGTERM and SIGKILL alike: what was acknowledged is there, and the log goes on."""
    with started(tmp_path) as broker:
        fill(broker.bootstrap, TOPIC, 100)
        getattr(broker, end)()
        broker.start()
        wait_for_leader(broker)
        expected: list[str | bytes | None] = [b"%d" % i for i in range(100)]
        assert values(broker) == expected
        fill(broker.bootstrap, TOPIC, 100)
        assert values(broker) == expected * 2


def test_stop_in_the_middle_of_a_request(tmp_path: Path) -> None:
    """Half a request and a parked fetch keep no broker from stopping, nor half of it in the log."""
    with started(tmp_path) as broker:
        with Wire(broker.bootstrap) as half, Wire(broker.bootstrap) as parked:
            produce = wire.frame(wire.produce(TOPIC, wire.some_batch(bytes(10_000))), 9)
            half.send(produce[:5000])
            parked.send(wire.frame(wire.fetch(TOPIC, 0, max_wait_ms=2**31 - 1), 11))
            broker.stop(within=ANSWER)
            half.assert_closed()
        broker.start()
        wait_for_leader(broker)
        assert values(broker) == []
        with Wire(broker.bootstrap) as connection:
            answer = connection.ask(
                wire.produce(TOPIC, wire.some_batch(b"after")), ProduceResponse, 9
            )
            assert answer.responses[0].partition_responses[0].base_offset == 0


def wait_for_leader(broker: Broker) -> None:
    """Apache accepts connections some moments before its partitions have leaders."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for _ in range(1000):
        found = admin.list_topics(TOPIC, timeout=60).topics[TOPIC].partitions
        if found and found[0].leader >= 0:
            return
    raise AssertionError("no leader")
