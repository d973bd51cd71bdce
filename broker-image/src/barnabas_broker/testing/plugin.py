"""The pytest plugin: fixtures that give a test a real broker.

    def test_orders(kafka_broker, kafka_topic):
        produce(kafka_broker.bootstrap_servers, kafka_topic, b"an order")

`kafka_broker`          one broker for the whole session
`kafka_topic`           a new topic for this test, named after it, deleted when the test ends
`secured_kafka_broker`  one with TLS, passwords and ACLs for the whole session
`fresh_kafka_broker`    a broker for this test alone
`kafka_broker_factory`  starts as many brokers for this test as it calls for

The ini option `kafka_broker_settings` holds broker settings, one `name=value` per line, for every
broker; `@pytest.mark.kafka_settings({...})` adds some for the brokers of one test, and
`@pytest.mark.kafka_topic(partitions=3, config={...})` says how its topic is made.

It is loaded in every pytest run of every project that has Barnabas installed, so it imports nothing
heavier than pytest itself until a fixture is asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barnabas_broker.testing.broker import Broker

# Kafka allows 249 characters; what is cut off here leaves room for the number that makes it unique.
TOPIC_NAME_CHARACTERS_MAX = 200

BrokerFactory = Callable[..., "Broker"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the ini options."""
    parser.addini(
        "kafka_broker_settings",
        "settings of every broker the fixtures start, one name=value per line",
        type="linelist",
    )
    parser.addini(
        "kafka_broker_startup_timeout",
        "seconds a broker of the fixtures has to become ready",
        default="30",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    config.addinivalue_line(
        "markers",
        "kafka_settings(settings): broker settings for fresh_kafka_broker and kafka_broker_factory",
    )
    config.addinivalue_line(
        "markers",
        "kafka_topic(partitions=-1, replication_factor=-1, config=None): how kafka_topic is made",
    )


@pytest.fixture(scope="session")
def kafka_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One real broker for the whole test session."""
    yield from _lived(request.config, {}, tmp_path_factory)


@pytest.fixture(scope="session")
def secured_kafka_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One for the whole session that speaks SASL_SSL, and goes by ACLs (`client_properties`)."""
    yield from _lived(request.config, {}, tmp_path_factory, secured=True)


@pytest.fixture
def kafka_broker_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerFactory]:
    """A function of broker settings that starts a broker; all stop with the test."""
    started: list[Iterator[Broker]] = []
    marked = _marked_settings(request)

    def start(settings: dict[str, Any] | None = None, *, secured: bool = False) -> Broker:
        given = {**marked, **(settings or {})}
        life = _lived(request.config, given, tmp_path_factory, secured=secured)
        broker = next(life)
        started.append(life)
        return broker

    yield start
    for life in reversed(started):
        next(life, None)


@pytest.fixture
def fresh_kafka_broker(kafka_broker_factory: BrokerFactory) -> Broker:
    """A real broker for this test alone, set by `@pytest.mark.kafka_settings`."""
    return kafka_broker_factory()


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new topic, made for this test and deleted after it.

    It lives on `fresh_kafka_broker` where the test uses that one, else on `kafka_broker`.
    """
    fresh = "fresh_kafka_broker" in request.fixturenames
    broker: Broker = request.getfixturevalue("fresh_kafka_broker" if fresh else "kafka_broker")
    marker = request.node.get_closest_marker("kafka_topic")
    name = broker.create_topic(
        _topic_name(request.node.name), **(marker.kwargs if marker is not None else {})
    )
    yield name
    if broker.running:
        _delete_if_there(broker, name)


_numbers = itertools.count(1)


def _topic_name(test_name: str) -> str:
    """A topic name that says which test it belongs to and that no other test gets."""
    legal = re.sub(r"[^a-zA-Z0-9._-]+", "-", test_name).strip("-")
    return f"{legal[:TOPIC_NAME_CHARACTERS_MAX]}-{next(_numbers)}"


def _delete_if_there(broker: Broker, name: str) -> None:
    """Delete the topic unless the test has deleted it itself."""
    from barnabas_kafka.errors import ErrorCode, KafkaError

    try:
        broker.delete_topic(name)
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise


def _marked_settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of all `kafka_settings` markers on the test, the closest one winning."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kafka_settings"))):
        for mapping in marker.args:
            settings |= mapping
    return settings


def _lived(
    config: pytest.Config,
    settings: dict[str, Any],
    directories: pytest.TempPathFactory,
    *,
    secured: bool = False,
) -> Iterator[Broker]:
    """Start a broker, hand it out once, stop it."""
    from barnabas_broker.testing.broker import Broker

    lines = config.getini("kafka_broker_settings")
    pairs = (line.partition("=") for line in lines)
    common = {name.strip(): value.strip() for name, _, value in pairs}
    broker = Broker(
        {**common, **settings},
        directory=directories.mktemp("kafka-broker"),
        startup_timeout_s=float(config.getini("kafka_broker_startup_timeout")),
        secured=secured,
    )
    with broker:
        yield broker
