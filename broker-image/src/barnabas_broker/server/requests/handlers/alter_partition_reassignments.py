"""AlterPartitionReassignments: partitions move to other brokers, or stay after all (KIP-455)."""

from asyncio import Future
from collections.abc import Iterable

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ApiPartitionReassignment
from barnabas_broker.controller.requests import Answers
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = AlterPartitionReassignmentsResponse


def handle(
    request: AlterPartitionReassignmentsRequest, call: RequestContext
) -> Work[Response | Future[Work[Response]]]:
    """Answer when the moves have begun; they end when the new replicas are in sync."""
    wanted = {}
    for topic in request.topics:
        for each in topic.partitions:
            wanted[TopicPartition(topic.name, each.partition_index)] = each.replicas
            yield
    allow_change = request.allow_replication_factor_change
    if not call.allowed_on_cluster(AclOperation.ALTER):
        return (yield from _unauthorised(wanted))

    def reassign(controller: Controller) -> Answers | KafkaError:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        asked = ApiPartitionReassignment(wanted, allow_change)
        answers: Answers = controller.active.process(asked, now_ms=call.now_ms)
        return answers

    def answer(answers: Answers | KafkaError) -> Work[Response]:
        if isinstance(answers, KafkaError):
            return Response(error_code=answers.code, error_message=answers.message)
        response = yield from _response(answers)
        response.allow_replication_factor_change = allow_change
        return response

    return call.ask_controller(reassign, answer)


def _unauthorised(named: Iterable[TopicPartition]) -> Work[Response]:
    """The error for the whole request and once more for each partition, as Kafka answers."""
    error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response = yield from _response(dict.fromkeys(named, error))
    response.error_code, response.error_message = error.code, error.message
    return response


def _response(answers: Answers) -> Work[Response]:
    topics: dict[str, ReassignableTopicResponse] = {}
    for tp, error in answers.items():
        topic = topics.setdefault(tp.topic, ReassignableTopicResponse(name=tp.topic))
        topic.partitions.append(
            ReassignablePartitionResponse(
                partition_index=tp.partition,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
        yield
    return Response(error_message=None, responses=list(topics.values()))


HANDLER = Handler(ApiKey.ALTER_PARTITION_REASSIGNMENTS, VersionRange(0, 1), handle, large=True)
