"""Topics that come into being when they are first needed."""

from pathlib import Path

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.server.running import Wire, port_of, running_node


def test_a_topic_that_cannot_be_created_is_explained(tmp_path: Path) -> None:
    """Where more replicas are asked for than there are brokers."""
    settings = {"transaction.state.log.replication.factor": "3"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        answer = wire.ask(FindCoordinatorRequest(key="tx", key_type=1), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "__transaction_state is not created" in answer.error_message
