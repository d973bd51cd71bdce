"""One broker for the whole session, topics of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.brokers import Broker, broker_under_test
from tests.clients.transactional import SETTINGS
from tests.waiting import ANSWER, seconds

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker under test, with default settings."""
    settings = {"broker.id": "0"}
    directory = tmp_path_factory.mktemp("broker-under-test")
    with broker_under_test(directory, settings) as started:
        yield started


@pytest.fixture(scope="module")
def transactional_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of the module's own for scenarios of transactions."""
    with broker_under_test(tmp_path_factory.mktemp("transactions"), SETTINGS) as started:
        yield started


@pytest.fixture(scope="session")
def admin(broker: Broker) -> AdminClient:
    """A librdkafka admin client."""
    # It is disconnected when nobody uses it for ten minutes; librdkafka 2.16 then forgets the only
    # broker (its issue 5511) unless told otherwise.
    return AdminClient(
        {"bootstrap.servers": broker.bootstrap, "metadata.recovery.strategy": "none"}
    )


@pytest.fixture(scope="session")
def topic_names() -> Iterator[str]:
    """Names nobody used before."""
    return (f"t{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def make_topic(admin: AdminClient, topic_names: Iterator[str]) -> MakeTopic:
    """Create a topic and return its name: make_topic(partitions=1, **{config})."""

    def make(
        config: Mapping[str, str] | None = None, *, partitions: int = 1, name: str | None = None
    ) -> str:
        name = name or next(topic_names)
        new = NewTopic(name, num_partitions=partitions, config=dict(config or {}))
        admin.create_topics([new], request_timeout=seconds(ANSWER))[name].result(seconds(ANSWER))
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """An empty topic of one partition."""
    return make_topic()
