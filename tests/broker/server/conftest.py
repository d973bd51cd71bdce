"""A running broker per test module, a connection and a topic per test."""

import re
from collections.abc import Iterator

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from tests.broker.server.running import Wire, port_of, running_node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    """A broker with default settings, but for one that would make tests wait."""
    delay = {"group.initial.rebalance.delay.ms": "0"}  # or every first join takes three seconds
    with running_node(tmp_path_factory.mktemp("log"), delay) as running:
        yield running


@pytest.fixture
def wire(node: BrokerServer) -> Iterator[Wire]:
    """A connection of this test's own."""
    with Wire(port_of(node)) as connection:
        yield connection


@pytest.fixture
def topic(wire: Wire, request: pytest.FixtureRequest) -> str:
    """A new topic of one partition, named after the test."""
    name = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)
    wire.create_topic(name)
    return name
