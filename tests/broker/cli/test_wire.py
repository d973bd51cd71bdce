"""One request at a time over a plain socket."""

import pytest

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.wire import Wire, broker_addresses
from barnabas_broker.testing import Broker
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse


def test_a_broker_is_asked(kafka_broker: Broker) -> None:
    """In the newest version that both sides know."""
    connection = Connection(kafka_broker.bootstrap_servers, 20)
    (address,) = broker_addresses(connection).values()
    with Wire(address, 20) as wire:
        told = wire.ask(MetadataRequest(topics=[]), MetadataResponse)
        assert wire.versions[MetadataRequest.api_key][0] == 0
    assert [(each.host, each.port) for each in told.brokers] == [address]


def test_another_protocol_is_refused(kafka_broker: Broker) -> None:
    """Rather than passwords or data be sent where everybody reads them."""
    properties = {"security.protocol": "ssl"}
    with pytest.raises(CommandError, match=r"security\.protocol=ssl"):
        broker_addresses(Connection(kafka_broker.bootstrap_servers, 20, properties))
