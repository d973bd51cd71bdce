"""ListPartitionReassignments: the moves of partitions that are under way (KIP-455)."""

from asyncio import Future

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.controller import Controller
from barnabas_broker.security.acls import AclOperation
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
) -> Response | Future[Response]:
    """Answer with those asked about, or all."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return _refused(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    asked = None
    if request.topics is not None:
        asked = [
            TopicPartition(topic.name, number)
            for topic in request.topics
            for number in topic.partition_indexes
        ]

    def find(controller: Controller) -> Moving | KafkaError:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        return controller.active.under_way(asked)

    return call.ask_controller(find, _response)


def _refused(error: KafkaError) -> Response:
    return Response(error_code=error.code, error_message=error.message)


def _response(moving: Moving | KafkaError) -> Response:
    if isinstance(moving, KafkaError):
        return _refused(moving)
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for tp, state in moving.items():
        by_topic.setdefault(tp.topic, []).append(
            OngoingPartitionReassignment(
                partition_index=tp.partition,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
        )
    return Response(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
    )


HANDLER = Handler(ApiKey.LIST_PARTITION_REASSIGNMENTS, VersionRange(0, 0), handle)
