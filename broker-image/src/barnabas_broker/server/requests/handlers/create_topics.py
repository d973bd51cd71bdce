"""CreateTopics: new topics, with partitions placed by the broker or by the caller.

Who gives no time to wait for a topic is answered REQUEST_TIMED_OUT though it is created, as by
Apache's `ZkAdminManager.createTopics`.
"""

from asyncio import Future
from collections import Counter
from functools import partial
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import CreatedTopic, admit_all
from barnabas_broker.controller.topics import CLUSTER_METADATA_TOPIC, NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.requests.throttling import exempt_broker
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings.topic import describe_topic

STRICT_SINCE: Final = 6
"""From then on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(
    request: CreateTopicsRequest, call: RequestContext
) -> Work[Future[Work[CreateTopicsResponse]]]:
    """Answer for each topic once; a name that is sent twice is refused."""
    sent = Counter(topic.name for topic in request.topics)
    on_cluster = call.allowed_on_cluster(AclOperation.CREATE, audited=False)
    answers: dict[str, CreatableTopicResult] = {}
    new = []
    counts = not (request.validate_only or exempt_broker(call))
    quota = call.mutation_quota(strict_since=STRICT_SINCE) if counts else None
    for topic in request.topics:
        try:
            refused = _refusal(topic.name, sent[topic.name], on_cluster, call)
            if refused is None:
                new.append(_new_topic(topic))
        except Exception as error:  # The boundary between one topic and the others.
            refused = _refused(refusal(error, "CreateTopics", topic.name), topic.name)
        if refused is not None:
            answers[topic.name] = refused
        yield

    def create(controller: Controller) -> list[CreatedTopic] | KafkaError:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        return controller.create_topics(
            new,
            validate_only=request.validate_only,
            admit=admit_all if quota is None else quota.take,
            principal=call.principal,
            now_ms=call.now_ms,
        )

    def answer(created: list[CreatedTopic] | KafkaError) -> Work[CreateTopicsResponse]:
        if isinstance(created, KafkaError):
            elsewhere = yield from each(sent, partial(_refused, created))
            return CreateTopicsResponse(topics=elsewhere)
        in_time = request.timeout_ms > 0 or request.validate_only
        for one in created:
            answers[one.outcome.name] = _answer(one, call, in_time=in_time)
            yield
        return CreateTopicsResponse(topics=[answers[name] for name in sent])

    return call.ask_controller(create, answer)


def _refused(error: KafkaError, name: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _refusal(
    name: str, times: int, on_cluster: bool, call: RequestContext
) -> CreatableTopicResult | None:
    if name == CLUSTER_METADATA_TOPIC:
        message = f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
        code = ErrorCode.INVALID_REQUEST
    elif times > 1:
        message = "Found multiple entries for this topic."
        code = ErrorCode.INVALID_REQUEST
    elif not (on_cluster or call.allowed(AclOperation.CREATE, ResourceType.TOPIC, name)):
        message = "Authorization failed."
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        return None
    return CreatableTopicResult(
        name=name,
        error_code=code,
        error_message=message,
        topic_config_error_code=ErrorCode.NONE
        if _may_describe_configs(name, call)
        else ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


def _may_describe_configs(name: str, call: RequestContext) -> bool:
    topic = ResourceType.TOPIC
    return call.allowed(AclOperation.DESCRIBE_CONFIGS, topic, name, audited=False)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, tuple(each.broker_ids)) for each in topic.assignments],
        configs=[(config.name, config.value) for config in topic.configs],
    )


def _answer(created: CreatedTopic, call: RequestContext, *, in_time: bool) -> CreatableTopicResult:
    outcome = created.outcome
    if not outcome.granted:
        return CreatableTopicResult(
            name=outcome.name, error_code=outcome.error, error_message=outcome.message
        )
    if not in_time:
        return CreatableTopicResult(
            name=outcome.name,
            topic_id=created.id,
            error_code=ErrorCode.REQUEST_TIMED_OUT,
            error_message=None,
        )
    if not _may_describe_configs(outcome.name, call):
        return CreatableTopicResult(
            name=outcome.name,
            topic_id=created.id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    return CreatableTopicResult(
        name=outcome.name,
        topic_id=created.id,
        error_message=None,
        num_partitions=created.num_partitions,
        replication_factor=created.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in describe_topic(call.broker.settings, created.config)
        ],
    )


HANDLER = Handler(ApiKey.CREATE_TOPICS, VersionRange(0, 7), handle, large=True)
