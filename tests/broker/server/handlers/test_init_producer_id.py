"""InitProducerId, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_broker.server.node import clock_ms
from barnabas_broker.zk.embedded import FILE_NAME
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.records.builder import build_batch
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


def test_ids_begin_above_those_in_the_logs(tmp_path: Path) -> None:
    """A directory taken over from elsewhere holds the state of producers nobody here has named.

    To give their ids away again would take new producers for them; a made-up id of astronomical
    size must not use up the rest.
    """

    def batch_of(producer_id: int) -> bytes:
        return build_batch(
            [(clock_ms(), None, b"v", ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )

    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        for producer_id in (4321, 2**63 - 1):
            assert wire.produce("t", batch_of(producer_id)).error_code == 0
    (tmp_path / FILE_NAME).unlink()
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        assert wire.ask(idempotent(), 4).producer_id == 4322
