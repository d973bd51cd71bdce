"""FindCoordinator: the broker that looks after a group (KIP-699 asks about several at once).

No group is served yet, and there is no way to tell those who want to join one from those who only
had to name one: librdkafka and Java ask for the coordinator also where partitions are assigned by
hand, and hand any lasting error to the application that is reading quite well. So the answer is
the one that leaves such readers alone.
"""

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
    """Say of each key that it has no coordinator now."""
    message = "consumer groups are not served yet"
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if call.version < SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
    )


HANDLER = Handler(ApiKey.FIND_COORDINATOR, VersionRange(0, 6), handle)
