"""FindCoordinator: the broker that looks after a group or a transactional id.

The first question creates the topic that they are kept in. Kafka answers that one with
COORDINATOR_NOT_AVAILABLE, because brokers have yet to learn of the topic; here they have when the
creation returns, so the first answer is already the right one. Since KIP-699 several keys can be
asked about at once.
"""

from asyncio import Future
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.cluster.views import live_endpoints
from barnabas_broker.coordinator.group.group_coordinator import GROUPS_TOPIC
from barnabas_broker.coordinator.hashing import partition_of
from barnabas_broker.coordinator.transaction.transaction_coordinator import TRANSACTIONS_TOPIC
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.internal_topics import with_internal_topic
from barnabas_broker.server.requests.request_context import RequestContext
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

Answer = Work[FindCoordinatorResponse] | Future[Work[FindCoordinatorResponse]]


class _Kind(NamedTuple):
    """What is coordinated: where it is kept, and what a caller must be allowed to describe."""

    topic: str
    resource: ResourceType
    refusal: ErrorCode


_KINDS = {
    GROUP: _Kind(GROUPS_TOPIC, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    TRANSACTION: _Kind(
        TRANSACTIONS_TOPIC,
        ResourceType.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}


def handle(request: FindCoordinatorRequest, call: RequestContext) -> Work[Answer]:
    """The coordinator of each key, as reached by the listener that the request came in on."""
    asked = request.coordinator_keys if call.version >= SEVERAL_KEYS_SINCE else [request.key]
    kind = _KINDS.get(request.key_type)
    if kind is None:
        unknown = ErrorCode.INVALID_REQUEST
        message = f"coordinators of type {request.key_type} are not known here"
        return _response(call, asked, lambda key: _refused(key, unknown, message))
    refusals = {}
    for key in asked:
        refusals[key] = _refusal(key, kind, call)
        yield

    def answer(why: str | None) -> Work[FindCoordinatorResponse]:
        return _response(call, asked, lambda key: refusals[key] or _found(key, kind, call, why))

    return then(
        None if all(refusals.values()) else with_internal_topic(kind.topic, call),
        answer,
        lambda error: _response(call, asked, lambda key: _refused(key, error.code)),
    )


def _refusal(key: str, kind: _Kind, call: RequestContext) -> Coordinator | None:
    """The answer for a key that the caller may not ask for."""
    try:
        if call.allowed(AclOperation.DESCRIBE, kind.resource, key):
            return None
    except Exception as error:  # The boundary between one key and the others.
        return _refused(key, refusal(error, "FindCoordinator", key).code)
    return _refused(key, kind.refusal)


def _found(key: str, kind: _Kind, call: RequestContext, why: str | None) -> Coordinator:
    image = call.broker.image
    topic = image.topic(kind.topic)
    state = None
    if topic is not None:
        state = topic.partition(partition_of(key, len(topic.partitions)))
    if state is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    endpoint = live_endpoints(image, call.listener).get(state.leader)
    if endpoint is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=state.leader, host=endpoint.host, port=endpoint.port)


def _refused(key: str, code: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_LEADER,
        port=NO_PORT,
        error_code=code,
        error_message=message or code.message,
    )


def _response(
    call: RequestContext, asked: Sequence[str], find: Callable[[str], Coordinator]
) -> Work[FindCoordinatorResponse]:
    found = yield from each(asked, find)
    if call.version >= SEVERAL_KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        # Without an error Kafka gives its name here, but nothing where several are answered.
        error_message=one.error_message or ErrorCode.NONE.name,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


HANDLER = Handler(ApiKey.FIND_COORDINATOR, VersionRange(0, 6), handle, large=True)
