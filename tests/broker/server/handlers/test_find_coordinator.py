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
        assert answer.error_message == ("NONE" if version else "")
    else:
        request = FindCoordinatorRequest(coordinator_keys=["team"])
        (answer,) = wire.ask(request, version).coordinators
        assert answer.key == "team"
    assert answer.error_code == 0
    assert (answer.node_id, answer.host, answer.port) == (0, "127.0.0.1", port_of(node))


def test_transactional_ids_have_a_coordinator(wire: Wire, node: Node) -> None:
    """The first question creates the topic that they are kept in, with one replica here."""
    answer = wire.ask(FindCoordinatorRequest(key="tx", key_type=1), 3)
    assert (answer.error_code, answer.node_id) == (0, 0)
    topic = node.broker.image.topics["__transaction_state"]
    assert len(topic.partitions) == 50
    assert topic.config["min.insync.replicas"] == "1"
    assert topic.config["cleanup.policy"] == "compact"


def test_other_kinds_of_coordinator_are_unknown(wire: Wire) -> None:
    """Each key is refused."""
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=2)
    codes = [each.error_code for each in wire.ask(request, 6).coordinators]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
