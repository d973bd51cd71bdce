"""CreatePartitions: more partitions for topics; there are never fewer.

Who gives no time to wait is answered REQUEST_TIMED_OUT though the partitions are created, as by
Apache's `ZkAdminManager.createPartitions`.
"""

from asyncio import Future
from collections import Counter
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import Growth, Outcome, admit_all
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas_kafka.protocol.registry import ApiKey

STRICT_SINCE: Final = 3
"""From then on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(
    request: CreatePartitionsRequest, call: RequestContext
) -> Work[Future[CreatePartitionsResponse]]:
    """Answer for each topic once; a name that is sent twice is refused."""
    sent = Counter(topic.name for topic in request.topics)
    answers: dict[str, CreatePartitionsTopicResult] = {}
    wanted = []
    for topic in request.topics:
        refused = _fault(topic.name, sent[topic.name], call)
        if refused is None:
            wanted.append(topic)
        else:
            answers[topic.name] = _refused(topic.name, refused.code, refused.message)
        yield
    quota = None if request.validate_only else call.mutation_quota(strict_since=STRICT_SINCE)

    def grow(controller: Controller) -> list[Outcome] | KafkaError:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        return controller.create_partitions(
            [_growth(topic) for topic in wanted],
            validate_only=request.validate_only,
            admit=admit_all if quota is None else quota.take,
            principal=call.principal,
            now_ms=call.now_ms,
        )

    def answer(outcomes: list[Outcome] | KafkaError) -> CreatePartitionsResponse:
        if isinstance(outcomes, KafkaError):
            elsewhere = [_refused(name, outcomes.code, outcomes.message) for name in sent]
            return CreatePartitionsResponse(results=elsewhere)
        untimely = request.timeout_ms <= 0 and not request.validate_only
        for outcome in outcomes:
            late = untimely and outcome.granted
            code = ErrorCode.REQUEST_TIMED_OUT if late else outcome.error
            answers[outcome.name] = _refused(outcome.name, code, outcome.message)
        return CreatePartitionsResponse(results=[answers[name] for name in sent])

    return call.ask_controller(grow, answer)


def _fault(name: str, times: int, call: RequestContext) -> KafkaError | None:
    """Why a topic is refused before its assignment is checked."""
    if times > 1:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
    try:
        if call.allowed(AclOperation.ALTER, ResourceType.TOPIC, name):
            return None
    except Exception as error:  # The boundary between one topic and the others.
        return refusal(error, "CreatePartitions", name)
    message = "The topic authorization is failed."
    return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)


def _growth(topic: CreatePartitionsTopic) -> Growth:
    given = topic.assignments
    assignments = None if given is None else [tuple(each.broker_ids) for each in given]
    return Growth(topic.name, topic.count, assignments)


def _refused(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


HANDLER = Handler(ApiKey.CREATE_PARTITIONS, VersionRange(0, 3), handle, large=True)
