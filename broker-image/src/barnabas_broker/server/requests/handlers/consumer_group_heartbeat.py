"""ConsumerGroupHeartbeat: a member of the consumer protocol joins, lives, or leaves (KIP-848)."""

from asyncio import Future

from barnabas_broker.coordinator.group.commits import consumer_group_write_error
from barnabas_broker.coordinator.group.consumer.availability import is_served
from barnabas_broker.coordinator.group.consumer.heartbeat import Beat
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard, refused_beat
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def offered(broker: BrokerServices) -> bool:
    """Whether the protocol is on."""
    return is_served(broker.settings, broker.image)


def handle(
    request: ConsumerGroupHeartbeatRequest, call: RequestContext
) -> Work[ConsumerGroupHeartbeatResponse | Future[ConsumerGroupHeartbeatResponse]]:
    """Have the group's coordinator take the member one step further.

    Expressions are matched before, in turns, so that the step itself finds what they match.
    """
    code = _fault(request, call)
    if code is not None:
        return refused_beat(KafkaError(code))
    try:
        shard = call.broker.groups.shard(request.group_id)
    except KafkaError as error:
        return refused_beat(error)
    yield from shard.matching(request.group_id, request.subscribed_topic_regex or "")

    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        beat = Beat(
            request=request,
            version=call.version,
            client=Client(call.client_id or "", f"/{call.client_host}"),
            waiter=waiter,
            visible=lambda name: call.allowed(
                AclOperation.DESCRIBE, ResourceType.TOPIC, name, audited=False
            ),
        )
        return shard.consumer_heartbeat(beat, now_ms)

    try:
        answer: ConsumerGroupHeartbeatResponse | Future[ConsumerGroupHeartbeatResponse] = (
            call.broker.groups.ask(request.group_id, step)
        )
    except KafkaError as error:
        return refused_beat(error)
    return then(
        answer,
        lambda response: response,
        lambda error: refused_beat(KafkaError(consumer_group_write_error(error.code))),
    )


def _fault(request: ConsumerGroupHeartbeatRequest, call: RequestContext) -> ErrorCode | None:
    if not offered(call.broker):
        return ErrorCode.UNSUPPORTED_VERSION
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    for name in request.subscribed_topic_names or ():
        if not call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None


HANDLER = Handler(ApiKey.CONSUMER_GROUP_HEARTBEAT, VersionRange(0, 1), handle, offered=offered)
