"""ListTransactions, as a client sees it."""

from typing import Any

from barnabas_kafka.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.server.running import Wire
from tests.broker.server.transactional import Transactional


def listed(wire: Wire, version: int = 1, **filters: Any) -> set[str]:
    """The ids that filters let through."""
    answer = wire.ask(ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    return {each.transactional_id for each in answer.transaction_states}


def test_filters_choose(wire: Wire, topic: str) -> None:
    """By state, by producer and by how long they are open; unknown states are named."""
    idle, busy = Transactional(wire, "idle"), Transactional(wire, "busy")
    for producer in (idle, busy):
        producer.init()
    busy.add(topic)
    assert listed(wire, version=0) == {"idle", "busy"}
    assert listed(wire, state_filters=["Ongoing"]) == {"busy"}
    assert listed(wire, producer_id_filters=[idle.id]) == {"idle"}
    assert listed(wire, state_filters=["Ongoing"], duration_filter=3_600_000) == set()
    answer = wire.ask(ListTransactionsRequest(state_filters=["Sleeping"]), 1)
    assert answer.unknown_state_filters == ["Sleeping"]
    assert answer.transaction_states == []
