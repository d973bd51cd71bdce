"""A broker that stops, is killed, and starts again, with clients in the middle of something."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas_kafka.protocol.messages.produce import ProduceResponse
from tests.clients import wire
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.librdkafka import fill, read_all
from tests.clients.wire import Wire
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of the module's own, which each test leaves running."""
    with broker_under_test(tmp_path_factory.mktemp("stopping"), {"broker.id": "0"}) as started:
        yield started


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic named after the test."""
    name: str = request.node.name.replace("[", "-").replace("]", "")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, 1)])[name].result(seconds(ANSWER))
    return name


def values(broker: Broker, topic: str) -> list[str | bytes | None]:
    """What the topic holds."""
    return [record.value() for record in read_all(broker.bootstrap, topic)]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_acknowledged_records_survive(broker: Broker, topic: str, end: str) -> None:
    """SIGTERM and SIGKILL alike: what was acknowledged is there, and the log goes on."""
    fill(broker.bootstrap, topic, 100)
    getattr(broker, end)()
    broker.start()
    wait_for_leader(broker, topic)
    expected: list[str | bytes | None] = [b"%d" % i for i in range(100)]
    assert values(broker, topic) == expected
    fill(broker.bootstrap, topic, 100)
    assert values(broker, topic) == expected * 2


def test_stop_in_the_middle_of_a_request(broker: Broker, topic: str) -> None:
    """Half a request and a parked fetch keep no broker from stopping, nor half of it in the log."""
    with Wire(broker.bootstrap) as half, Wire(broker.bootstrap) as parked:
        produce = wire.frame(wire.produce(topic, wire.some_batch(bytes(10_000))), 9)
        half.send(produce[:5000])
        parked.send(wire.frame(wire.fetch(topic, 0, max_wait_ms=2**31 - 1), 11))
        broker.stop(within=ANSWER)
        half.assert_closed()
    broker.start()
    wait_for_leader(broker, topic)
    assert values(broker, topic) == []
    with Wire(broker.bootstrap) as connection:
        answer = connection.ask(wire.produce(topic, wire.some_batch(b"after")), ProduceResponse, 9)
        assert answer.responses[0].partition_responses[0].base_offset == 0


def wait_for_leader(broker: Broker, topic: str) -> None:
    """Apache accepts connections some moments before its partitions have leaders."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def leaders() -> list[int]:
        found = admin.list_topics(topic, timeout=ATTEMPT_S).topics[topic].partitions
        return [partition.leader for partition in found.values()]

    wait_for(
        f"the leaders of {topic}",
        leaders,
        until=lambda found: found and min(found) >= 0,
        retry=(KafkaException,),
    )
