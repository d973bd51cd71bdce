"""LeaderAndIsr: the controller sends which partitions this broker leads and follows."""

from asyncio import Future
from collections.abc import Mapping

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.controller import Controller
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, among_others
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

# From here on answers are by topic id.
TOPIC_IDS_SINCE = 5

Result = tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]


def handle(
    request: LeaderAndIsrRequest, call: RequestContext
) -> LeaderAndIsrResponse | Future[Work[LeaderAndIsrResponse]]:
    """Answer once this broker leads and follows what the request says."""
    if not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return LeaderAndIsrResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def obey(controller: Controller) -> Result:
        stale = controller.accept_controller(request.controller_epoch, request.broker_epoch)
        if stale is not None:
            return stale, {}
        return ErrorCode.NONE, controller.member.take_leadership(request)

    replicas = call.broker.replicas
    expected = [
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.leader == call.broker.id
    ]
    replicas.expect(expected)
    answered = call.broker.controller.ask(
        obey, lambda result: _answer(request, result, replicas, call.version)
    )
    answered.add_done_callback(lambda _: replicas.expect_no_more(expected))
    return answered


def _answer(
    request: LeaderAndIsrRequest, result: Result, replicas: ReplicaManager, version: int
) -> Work[LeaderAndIsrResponse]:
    code, found = result
    if code is not ErrorCode.NONE:
        return LeaderAndIsrResponse(error_code=code)
    topics = []
    for topic in request.topic_states:
        answered = LeaderAndIsrTopicError(topic_id=topic.topic_id)
        topics.append(answered)
        for each in topic.partition_states:
            tp = TopicPartition(topic.topic_name, each.partition_index)
            answered.partition_errors.append(
                LeaderAndIsrPartitionError(
                    topic_name=tp.topic,
                    partition_index=tp.partition,
                    error_code=_of_replica(tp, found[tp], replicas),
                )
            )
            yield
    if version >= TOPIC_IDS_SINCE:
        return LeaderAndIsrResponse(topics=topics)
    return LeaderAndIsrResponse(
        partition_errors=[each for topic in topics for each in topic.partition_errors]
    )


def _of_replica(tp: TopicPartition, error: ErrorCode, replicas: ReplicaManager) -> ErrorCode:
    """What the controller is to know of a replica: KAFKA_STORAGE_ERROR makes it go on without.

    A disk that failed for one partition of a topic says nothing about the others.
    """
    if error not in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):
        return error
    try:
        if replicas.is_counted_out(tp):
            return ErrorCode.KAFKA_STORAGE_ERROR
    except Exception as failure:  # The boundary between one partition and the others.
        return refusal(failure, "LeaderAndIsr", tp).code
    if replicas.get(tp) is not None:
        return ErrorCode.NONE
    # Of what is tried again nothing is known yet, and no later answer would say that it succeeded.
    return ErrorCode.UNKNOWN_SERVER_ERROR if replicas.is_retried(tp) else error


# Before version 2 there is no broker epoch, and partitions are not by topic (Kafka 2.2).
HANDLER = Handler(
    ApiKey.LEADER_AND_ISR, VersionRange(2, 7), handle, large=True, offered=among_others
)
