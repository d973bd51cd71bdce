"""DeleteTopics: topics by name or, since version 6, by id.

With delete.topic.enable=false a request is refused, as Apache's brokers refuse it. What the
setting used to mean, that a topic is only marked, remains for marks in the coordination data.
Who gives no time to wait is answered REQUEST_TIMED_OUT though the topic is deleted, as by Apache's
`ZkAdminManager.deleteTopics`.
"""

from asyncio import Future
from collections.abc import Sequence
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import Outcome, admit_all
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys

# From here on TOPIC_DELETION_DISABLED may be answered, and topics may be meant by id.
TOPIC_DELETION_DISABLED_SINCE = 3
TOPIC_IDS_SINCE = 6

STRICT_SINCE = 5
"""From then on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(
    request: DeleteTopicsRequest, call: RequestContext
) -> Work[DeleteTopicsResponse | Future[Work[DeleteTopicsResponse]]]:
    """Answer for each topic; those that may be deleted are gone when the answer is there."""
    if call.version >= TOPIC_IDS_SINCE:
        asked: Sequence[DeleteTopicState] = request.topics
    else:
        asked = yield from each(request.topic_names, lambda name: DeleteTopicState(name=name))
    fault = _refusal(asked, call)
    if fault is None:
        answers = yield from each(asked, partial(_judged, call))
    else:
        answers = yield from each(asked, partial(_refused, code=fault))
    names = [topic.name for topic in answers if topic.name is not None and not topic.error_code]
    quota = call.mutation_quota(strict_since=STRICT_SINCE)

    def delete(controller: Controller) -> list[Outcome] | KafkaError:
        try:
            # Before anything that was found here: others may know of too little.
            controller.check_active()
        except KafkaError as error:
            return error
        return controller.delete_topics(
            names,
            admit=admit_all if quota is None else quota.take,
            principal=call.principal,
            now_ms=call.now_ms,
        )

    def answer(outcomes: list[Outcome] | KafkaError) -> Work[DeleteTopicsResponse]:
        if isinstance(outcomes, KafkaError):
            elsewhere = yield from each(asked, partial(_refused, code=outcomes.code))
            return DeleteTopicsResponse(responses=elsewhere)
        by_name = {outcome.name: outcome for outcome in outcomes}
        for topic in answers:
            if topic.name is not None and topic.name in by_name:
                outcome = by_name[topic.name]
                topic.error_code, topic.error_message = outcome.error, outcome.message
                if outcome.granted and request.timeout_ms <= 0:
                    topic.error_code = ErrorCode.REQUEST_TIMED_OUT
            yield
        return DeleteTopicsResponse(responses=answers)

    return call.ask_controller(delete, answer)


def _refusal(asked: Sequence[DeleteTopicState], call: RequestContext) -> ErrorCode | None:
    """Why the whole request is refused; this response can only say it topic by topic."""
    if not call.broker.settings[keys.DELETE_TOPIC_ENABLE]:
        disabled = call.version >= TOPIC_DELETION_DISABLED_SINCE
        return ErrorCode.TOPIC_DELETION_DISABLED if disabled else ErrorCode.INVALID_REQUEST
    if any(topic.name is not None and topic.topic_id != ZERO_UUID for topic in asked):
        return ErrorCode.INVALID_REQUEST
    return None


def _refused(asked: DeleteTopicState, code: ErrorCode) -> DeletableTopicResult:
    return DeletableTopicResult(name=asked.name, topic_id=asked.topic_id, error_code=code)


def _judged(call: RequestContext, asked: DeleteTopicState) -> DeletableTopicResult:
    try:
        return _checked(call, asked)
    except Exception as error:  # The boundary between one topic and the others.
        return _refused(asked, refusal(error, "DeleteTopics", asked.name).code)


def _checked(call: RequestContext, asked: DeleteTopicState) -> DeletableTopicResult:
    """The answer as far as it is known before anything is deleted."""
    name = asked.name
    by_id = asked.topic_id != ZERO_UUID
    if by_id:
        topic = call.broker.image.topic_by_id(asked.topic_id)
        if topic is None:
            return _refused(asked, ErrorCode.UNKNOWN_TOPIC_ID)
        name = topic.name
    if name is None:
        return _refused(asked, ErrorCode.INVALID_REQUEST)
    topic_type = ResourceType.TOPIC
    if by_id and not call.allowed(AclOperation.DESCRIBE, topic_type, name, audited=False):
        # A client that may not describe the topic must not learn its name; its id it sent.
        return _refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer = DeletableTopicResult(name=name, topic_id=asked.topic_id)
    if not call.allowed(AclOperation.DELETE, ResourceType.TOPIC, name):
        answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return answer


HANDLER = Handler(ApiKey.DELETE_TOPICS, VersionRange(0, 6), handle, large=True)
