"""ElectLeaders: preferred leaders, or any that is left (KIP-183, KIP-460)."""

from asyncio import Future

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ReplicaLeaderElection
from barnabas_broker.controller.requests import Answers, ElectionType
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

_KINDS = frozenset(int(kind) for kind in ElectionType)


def handle(
    request: ElectLeadersRequest, call: RequestContext
) -> ElectLeadersResponse | Future[ElectLeadersResponse]:
    """Answer for each partition when its leader is elected, or why it is not."""
    asked = None
    if request.topic_partitions is not None:
        asked = [
            TopicPartition(topic.topic, number)
            for topic in request.topic_partitions
            for number in topic.partitions
        ]
    if not call.allowed_on_cluster(AclOperation.ALTER):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, asked)
    if request.election_type not in _KINDS:
        return _refused(ErrorCode.INVALID_REQUEST, asked)
    kind = ElectionType(request.election_type)

    def elect(controller: Controller) -> ElectLeadersResponse:
        try:
            controller.check_active()
        except KafkaError as error:
            named = call.broker.image.all_partitions() if asked is None else asked
            return _response(ErrorCode.NONE, dict.fromkeys(named, error))
        answers = controller.active.process(ReplicaLeaderElection(kind, asked), now_ms=call.now_ms)
        return _response(ErrorCode.NONE, answers)

    return call.ask_controller(elect, lambda response: response)


def _refused(code: ErrorCode, asked: list[TopicPartition] | None) -> ElectLeadersResponse:
    return _response(code, dict.fromkeys(asked or (), KafkaError(code)))


def _response(code: ErrorCode, answers: Answers) -> ElectLeadersResponse:
    by_topic: dict[str, list[PartitionResult]] = {}
    for tp, error in answers.items():
        by_topic.setdefault(tp.topic, []).append(
            PartitionResult(
                partition_id=tp.partition,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(topic=name, partition_result=results)
            for name, results in by_topic.items()
        ],
    )


HANDLER = Handler(ApiKey.ELECT_LEADERS, VersionRange(0, 2), handle)
