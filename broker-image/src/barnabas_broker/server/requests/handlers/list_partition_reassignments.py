"""ListPartitionReassignments: the moves of partitions that are under way (KIP-455)."""

from asyncio import Future
from functools import partial

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.controller import Controller
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = ListPartitionReassignmentsResponse
Moving = dict[TopicPartition, PartitionState]


def handle(
    request: ListPartitionReassignmentsRequest, call: RequestContext
) -> Work[Response | Future[Work[Response]]]:
    """Answer with those asked about, or all."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return _refused(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    asked: list[TopicPartition] | None = None
    if request.topics is not None:
        asked = []
        for topic in request.topics:
            asked += yield from each(topic.partition_indexes, partial(TopicPartition, topic.name))

    def find(controller: Controller) -> Moving | KafkaError:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        return controller.active.under_way(asked)

    return call.ask_controller(find, _response)


def _refused(error: KafkaError) -> Response:
    return Response(error_code=error.code, error_message=error.message)


def _response(moving: Moving | KafkaError) -> Work[Response]:
    if isinstance(moving, KafkaError):
        return _refused(moving)
    topics: dict[str, OngoingTopicReassignment] = {}
    for tp, state in moving.items():
        topic = topics.setdefault(tp.topic, OngoingTopicReassignment(name=tp.topic))
        topic.partitions.append(
            OngoingPartitionReassignment(
                partition_index=tp.partition,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
        )
        yield
    return Response(error_message=None, topics=list(topics.values()))


HANDLER = Handler(ApiKey.LIST_PARTITION_REASSIGNMENTS, VersionRange(0, 0), handle, large=True)
