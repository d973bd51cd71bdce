"""InitProducerId, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.server.running import Wire, port_of, running_node


def idempotent() -> InitProducerIdRequest:
    """What a producer without transactional id sends."""
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_its_own_id(wire: Wire, version: int) -> None:
    """Two producers with one id would be taken for each other's duplicates."""
    first, second = (wire.ask(idempotent(), version) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id == first.producer_id + 1


def test_ids_are_not_given_again_after_a_restart(tmp_path: Path) -> None:
    """The claimed block is durable before the first id of it is told."""
    given = []
    for _ in range(2):
        with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
            given.append(wire.ask(idempotent(), 4).producer_id)
    assert given == [0, 1000]


def test_a_transactional_producer_is_refused(wire: Wire) -> None:
    """There is no transaction coordinator: an id would not fence anybody."""
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    assert wire.ask(request, 4).error_code == ErrorCode.INVALID_REQUEST


def test_half_an_identity_is_refused(wire: Wire) -> None:
    """KIP-360: producer id and epoch come together or not at all."""
    request = idempotent()
    request.producer_id = 5
    assert wire.ask(request, 4).error_code == ErrorCode.INVALID_REQUEST
