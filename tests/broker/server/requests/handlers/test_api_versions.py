"""ApiVersions, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import collect_handlers
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.server.running import Wire, port_of, produce_request, running_node


@pytest.mark.parametrize("version", range(5))
def test_exactly_what_is_served_is_listed(node: BrokerServer, wire: Wire, version: int) -> None:
    """A client must be able to rely on every line, in every version of the answer.

    What is off by the settings has a handler, and is not listed.
    """
    request = ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
    response = wire.ask(request, version)
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [
        (handler.api_key, handler.versions.min, handler.versions.max)
        for handler in collect_handlers()
        if handler.offered is None or handler.offered(node.broker)
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_the_finalized_transaction_version_is_advertised(
    node: BrokerServer, wire: Wire, version: int
) -> None:
    """As a finalized feature with an epoch, without which no client speaks the second one.

    What is supported is for those that know features whose least version is 0.
    """
    request = ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
    response = wire.ask(request, version)
    (finalized,) = response.finalized_features
    assert (finalized.name, finalized.max_version_level) == ("transaction.version", 2)
    assert response.finalized_features_epoch == node.broker.image.brokers[node.broker.id].epoch >= 0
    supported = [
        (each.name, each.min_version, each.max_version) for each in response.supported_features
    ]
    assert supported == ([("transaction.version", 0, 2)] if version >= 4 else [])


def test_an_older_protocol_among_brokers_keeps_transactions_to_the_first(tmp_path: Path) -> None:
    """Nothing is finalized then: clients see what Kafka 3 with ZooKeeper shows them."""
    older = {"inter.broker.protocol.version": "3.9"}
    with running_node(tmp_path, older) as node, Wire(port_of(node)) as wire:
        request = ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
        response = wire.ask(request, 4)
        served = {each.api_key: each.max_version for each in response.api_keys}
        assert wire.produce("t", b"", version=11).error_code != 0
        # There is no answer that says so: the connection ends, as Apache's does.
        wire.send(produce_request("t", b""), 12)
        assert wire.closed_by_broker()
    assert response.finalized_features == []
    assert (served[ApiKey.PRODUCE], served[ApiKey.END_TXN]) == (11, 4)
    assert (served[ApiKey.TXN_OFFSET_COMMIT], served[ApiKey.WRITE_TXN_MARKERS]) == (4, 1)


@pytest.mark.parametrize("name", ["", "no spaces", "-dash", "dot."])
def test_client_software_must_be_named(wire: Wire, name: str) -> None:
    """KIP-511 says what a name looks like; anything else would end up in logs and metrics."""
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
    assert wire.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST
