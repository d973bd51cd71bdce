"""FindCoordinator: the broker that looks after a group (KIP-699 asks about several at once).

The first question creates the topic that groups are kept in. Kafka answers that one with
COORDINATOR_NOT_AVAILABLE, because brokers have yet to hear of the topic; here they have when the
creation returns, so the first answer is already the right one.

Transactions are not served yet. COORDINATOR_NOT_AVAILABLE would have producers ask for ever, so
they are told with an error that they give up on.
"""

from asyncio import Future
from collections.abc import Callable

from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.cluster.views import live_endpoints
from barnabas_broker.controller.requests import CreatedTopic
from barnabas_broker.coordinator.group.shell import GROUPS_TOPIC
from barnabas_broker.security.acls import AclOperation, ResourceType
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
GROUP = 0
TRANSACTION = 1
NO_PORT = -1

Answer = FindCoordinatorResponse | Future[FindCoordinatorResponse]


def handle(request: FindCoordinatorRequest, call: Call) -> Answer:
    """Tell where each key is coordinated, through the listener that the request came in on."""
    asked = request.coordinator_keys if call.version >= SEVERAL_KEYS_SINCE else [request.key]
    if request.key_type == TRANSACTION:
        return _response(call, [_transactional(key, call) for key in asked])
    if request.key_type != GROUP:
        unknown = ErrorCode.INVALID_REQUEST
        message = f"coordinators of type {request.key_type} are not known here"
        return _response(call, [_refused(key, unknown, message) for key in asked])
    allowed = {key for key in asked if call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, key)}
    if not allowed or GROUPS_TOPIC in call.broker.image.topics:
        return _response(call, [_group(key, call, allowed) for key in asked])
    return call.broker.controller.ask(
        lambda controller: controller.auto_create(
            [GROUPS_TOPIC], principal=call.principal, now_ms=call.now_ms
        ),
        _when_created(asked, call, allowed),
    )


def _when_created(
    asked: list[str], call: Call, allowed: set[str]
) -> Callable[[list[CreatedTopic]], FindCoordinatorResponse]:
    def answer(created: list[CreatedTopic]) -> FindCoordinatorResponse:
        outcome = created[0].outcome
        why = None if outcome.granted else f"{GROUPS_TOPIC} is not created: {outcome.message}"
        return _response(call, [_group(key, call, allowed, why) for key in asked])

    return answer


def _group(key: str, call: Call, allowed: set[str], why: str | None = None) -> Coordinator:
    if key not in allowed:
        return _refused(key, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    image = call.broker.image
    topic = image.topic(GROUPS_TOPIC)
    index = call.broker.groups.partition_of(key)
    state = topic.partition(index) if topic is not None and index is not None else None
    if state is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    endpoint = live_endpoints(image, call.listener).get(state.leader)
    if endpoint is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=state.leader, host=endpoint.host, port=endpoint.port)


def _transactional(key: str, call: Call) -> Coordinator:
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
        return _refused(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return _refused(key, ErrorCode.UNSUPPORTED_VERSION, "transactions are not served yet")


def _refused(key: str, code: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_LEADER,
        port=NO_PORT,
        error_code=code,
        error_message=message or code.message,
    )


def _response(call: Call, found: list[Coordinator]) -> FindCoordinatorResponse:
    if call.version >= SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


HANDLER = Handler(ApiKey.FIND_COORDINATOR, VersionRange(0, 6), handle)
