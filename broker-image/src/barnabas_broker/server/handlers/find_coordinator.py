"""FindCoordinator: the broker that looks after a group (KIP-699 asks about several at once)."""

from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas_kafka.protocol.registry import ApiKey

SEVERAL_KEYS_SINCE = 4


def handle(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    """Say that there is no coordinator, in a way that no client takes for a passing trouble."""
    message = "consumer groups are not served yet"
    code = ErrorCode.UNSUPPORTED_VERSION
    if call.version < SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
    )


HANDLER = Handler(ApiKey.FIND_COORDINATOR, VersionRange(0, 6), handle)
