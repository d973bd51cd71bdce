"""FindCoordinator on a running broker."""

import pytest

from barnabas_broker.server.node import Node
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.server.running import Wire, port_of


@pytest.mark.parametrize("version", range(7))
def test_groups_are_coordinated_here(wire: Wire, node: Node, version: int) -> None:
    """The first question creates the topic, and its answer is already the right one."""
    if version < 4:
        answer = wire.ask(FindCoordinatorRequest(key="team"), version)
    else:
        request = FindCoordinatorRequest(coordinator_keys=["team"])
        (answer,) = wire.ask(request, version).coordinators
        assert answer.key == "team"
    assert answer.error_code == 0
    assert (answer.node_id, answer.host, answer.port) == (0, "127.0.0.1", port_of(node))


def test_producers_with_transactions_are_told_to_give_up(wire: Wire) -> None:
    """Nothing retriable: they would ask for ever."""
    answer = wire.ask(FindCoordinatorRequest(key="tx", key_type=1), 3)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "transactions" in answer.error_message
    assert answer.node_id == -1


def test_other_kinds_of_coordinator_are_unknown(wire: Wire) -> None:
    """Each key is refused."""
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=2)
    codes = [each.error_code for each in wire.ask(request, 6).coordinators]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
