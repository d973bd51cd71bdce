"""AlterPartitionReassignments: partitions move to other brokers, or stay after all (KIP-455)."""

from asyncio import Future

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ApiPartitionReassignment
from barnabas_broker.controller.requests import Answers
from barnabas_broker.security.acls import AclOperation
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
) -> Response | Future[Response]:
    """Answer when the moves have begun; they end when the new replicas are in sync."""
    if not call.allowed_on_cluster(AclOperation.ALTER):
        return _unauthorised(request)
    wanted = {
        TopicPartition(topic.name, each.partition_index): each.replicas
        for topic in request.topics
        for each in topic.partitions
    }

    def reassign(controller: Controller) -> Answers | KafkaError:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        asked = ApiPartitionReassignment(wanted, request.allow_replication_factor_change)
        answers: Answers = controller.active.process(asked, now_ms=call.now_ms)
        return answers

    def answer(answers: Answers | KafkaError) -> Response:
        response = _response(answers)
        if not response.error_code:
            allowed = request.allow_replication_factor_change
            response.allow_replication_factor_change = allowed
        return response

    return call.ask_controller(reassign, answer)


def _refused(error: KafkaError) -> Response:
    return Response(error_code=error.code, error_message=error.message)


def _unauthorised(request: AlterPartitionReassignmentsRequest) -> Response:
    """The error for the whole request and once more for each partition, as Kafka answers."""
    error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    named = [
        TopicPartition(topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    response = _response(dict.fromkeys(named, error))
    response.error_code, response.error_message = error.code, error.message
    return response


def _response(answers: Answers | KafkaError) -> Response:
    if isinstance(answers, KafkaError):
        return _refused(answers)
    by_topic: dict[str, list[ReassignablePartitionResponse]] = {}
    for tp, error in answers.items():
        by_topic.setdefault(tp.topic, []).append(
            ReassignablePartitionResponse(
                partition_index=tp.partition,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
    return Response(
        error_message=None,
        responses=[
            ReassignableTopicResponse(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
    )


HANDLER = Handler(ApiKey.ALTER_PARTITION_REASSIGNMENTS, VersionRange(0, 1), handle)
