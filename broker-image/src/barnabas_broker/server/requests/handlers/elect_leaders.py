"""ElectLeaders: preferred leaders, or any that is left (KIP-183, KIP-460)."""

from asyncio import Future
from functools import partial

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import ReplicaLeaderElection
from barnabas_broker.controller.requests import Answers, ElectionType
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work, each
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
) -> Work[ElectLeadersResponse | Future[Work[ElectLeadersResponse]]]:
    """Answer for each partition when its leader is elected, or why it is not."""
    asked: list[TopicPartition] | None = None
    if request.topic_partitions is not None:
        asked = []
        for topic in request.topic_partitions:
            asked += yield from each(topic.partitions, partial(TopicPartition, topic.topic))
    if not call.allowed_on_cluster(AclOperation.ALTER):
        return (yield from _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, asked))
    if request.election_type not in _KINDS:
        return (yield from _refused(ErrorCode.INVALID_REQUEST, asked))
    kind = ElectionType(request.election_type)

    def elect(controller: Controller) -> Answers:
        try:
            controller.check_active()
        except KafkaError as error:
            named = call.broker.image.all_partitions() if asked is None else asked
            return dict.fromkeys(named, error)
        answers: Answers = controller.active.process(
            ReplicaLeaderElection(kind, asked), now_ms=call.now_ms
        )
        return answers

    return call.ask_controller(elect, partial(_response, ErrorCode.NONE))


def _refused(code: ErrorCode, asked: list[TopicPartition] | None) -> Work[ElectLeadersResponse]:
    return _response(code, dict.fromkeys(asked or (), KafkaError(code)))


def _response(code: ErrorCode, answers: Answers) -> Work[ElectLeadersResponse]:
    topics: dict[str, ReplicaElectionResult] = {}
    for tp, error in answers.items():
        topic = topics.setdefault(tp.topic, ReplicaElectionResult(topic=tp.topic))
        topic.partition_result.append(
            PartitionResult(
                partition_id=tp.partition,
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
        yield
    return ElectLeadersResponse(error_code=code, replica_election_results=list(topics.values()))


HANDLER = Handler(ApiKey.ELECT_LEADERS, VersionRange(0, 2), handle, large=True)
