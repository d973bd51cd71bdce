"""Metadata: brokers, topics and leaders; where every client begins.

Asking about a topic that does not exist creates it, where broker and client agree to that. Kafka
answers LEADER_NOT_AVAILABLE first, because brokers have yet to hear of the new topic; here they
have when the creation returns, so the first answer is already complete.
"""

from asyncio import Future
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from barnabas_broker.cluster.image import Endpoint, MetadataImage, PartitionState, TopicImage
from barnabas_broker.cluster.views import live_endpoints, view_partition
from barnabas_broker.controller.requests import CreatedTopic
from barnabas_broker.controller.topics import is_internal, name_fault
from barnabas_broker.security.acls import (
    CLUSTER_NAME,
    OPERATIONS_NOT_REQUESTED,
    AclOperation,
    ResourceType,
)
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys

# From here on a topic may be asked for by its id.
TOPIC_IDS_SINCE = 12
# From here on a leader without the client's listener is told apart from no leader.
LISTENER_NOT_FOUND_SINCE = 6


def handle(request: MetadataRequest, call: Call) -> MetadataResponse | Future[MetadataResponse]:
    """Answer for the topics asked for, through the listener that the request came in on."""
    creatable, errors = _to_create(request, call)
    if not creatable:
        return _response(request, call, errors)

    def answer(created: list[CreatedTopic]) -> MetadataResponse:
        refused = {
            each.outcome.name: each.outcome.error for each in created if not each.outcome.granted
        }
        return _response(request, call, errors | refused)

    return call.broker.controller.ask(
        lambda controller: controller.auto_create(
            creatable, principal=call.principal, now_ms=call.now_ms
        ),
        answer,
    )


def _response(
    request: MetadataRequest, call: Call, errors: Mapping[str, ErrorCode]
) -> MetadataResponse:
    """The answer from the current image; `errors` say why topics were not created."""
    asked = request.topics
    if asked is None or (call.version == 0 and not asked):
        topics = _all_topics(call)
    elif _is_malformed(asked, call):
        # A whole-request error, which this response can only tell topic by topic.
        topics = [_refused(ErrorCode.INVALID_REQUEST, each.name or "") for each in asked]
    else:
        topics = _some_topics(asked, call, errors)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = call.allowed_operations(
                    ResourceType.TOPIC, topic.name
                )
    image = call.broker.image
    return MetadataResponse(
        brokers=_brokers(image, call.listener),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=_cluster_operations(request, call),
    )


def _is_malformed(asked: Sequence[MetadataRequestTopic], call: Call) -> bool:
    """Whether a topic is meant by something else than its name where only that can be."""
    return call.version < TOPIC_IDS_SINCE and any(
        each.name is None or each.topic_id != ZERO_UUID for each in asked
    )


def _brokers(image: MetadataImage, listener: str) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(
            node_id=broker, host=endpoint.host, port=endpoint.port, rack=image.brokers[broker].rack
        )
        for broker, endpoint in sorted(live_endpoints(image, listener).items())
    ]


def _cluster_operations(request: MetadataRequest, call: Call) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_REQUESTED
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return 0
    return call.allowed_operations(ResourceType.CLUSTER, CLUSTER_NAME)


def _may_describe(call: Call, name: str) -> bool:
    return call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _all_topics(call: Call) -> list[MetadataResponseTopic]:
    """Every topic that the caller may know of; the others are not mentioned."""
    names = (name for name in call.broker.image.topics if _may_describe(call, name))
    return _described(names, call)


def _names(asked: Sequence[MetadataRequestTopic]) -> dict[str, None] | None:
    """The topics that are asked for by name, each once; None where they are meant by id."""
    if any(each.topic_id != ZERO_UUID for each in asked):
        return None
    return dict.fromkeys(each.name for each in asked if each.name is not None)


def _some_topics(
    asked: Sequence[MetadataRequestTopic], call: Call, errors: Mapping[str, ErrorCode]
) -> list[MetadataResponseTopic]:
    names = _names(asked)
    if names is None:
        ids = dict.fromkeys(each.topic_id for each in asked if each.topic_id != ZERO_UUID)
        return [_by_id(topic_id, call) for topic_id in ids]
    answers: dict[str, MetadataResponseTopic] = {}
    for name in names:
        if not _may_describe(call, name):
            answers[name] = _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        elif name not in call.broker.image.topics:
            answers[name] = _refused(errors.get(name) or _why_unknown(name), name)
    described = _described((name for name in names if name not in answers), call)
    answers |= {topic.name: topic for topic in described if topic.name is not None}
    return [answers[name] for name in names]


def _why_unknown(name: str) -> ErrorCode:
    if name_fault(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _to_create(request: MetadataRequest, call: Call) -> tuple[list[str], dict[str, ErrorCode]]:
    """Unknown topics that this request creates, and why others that it asks for are not."""
    asked = request.topics
    if (
        not asked
        or not request.allow_auto_topic_creation
        or not call.broker.settings[keys.AUTO_CREATE_TOPICS_ENABLE]
        or _is_malformed(asked, call)
    ):
        return [], {}
    known = call.broker.image.topics
    unknown = [name for name in _names(asked) or () if name not in known]
    creatable: list[str] = []
    errors: dict[str, ErrorCode] = {}
    for name in unknown:
        if name_fault(name) is not None or not _may_describe(call, name):
            continue  # Told, without a creation, by the answer itself.
        if call.allowed_on_cluster(AclOperation.CREATE) or call.allowed(
            AclOperation.CREATE, ResourceType.TOPIC, name
        ):
            creatable.append(name)
        else:
            errors[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return creatable, errors


def _refused(
    code: ErrorCode, name: str | None, topic_id: UUID = ZERO_UUID
) -> MetadataResponseTopic:
    # Whether a topic is internal is told by its name alone, so it gives nothing away.
    internal = name is not None and is_internal(name)
    return MetadataResponseTopic(
        error_code=code, name=name, topic_id=topic_id, is_internal=internal
    )


def _by_id(topic_id: UUID, call: Call) -> MetadataResponseTopic:
    topic = call.broker.image.topic_by_id(topic_id)
    if topic is None:
        return _refused(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    if not _may_describe(call, topic.name):
        return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
    return _described([topic.name], call)[0]


def _described(names: Iterable[str], call: Call) -> list[MetadataResponseTopic]:
    image = call.broker.image
    # Clients ask over and over while nothing changes, and building thousands of partitions is the
    # costly part of the answer; they are made once for each image, listener and kind of version.
    kind = (__name__, call.listener, call.version == 0, call.version < LISTENER_NOT_FOUND_SINCE)
    known: dict[str, list[MetadataResponsePartition]] = image.memo.setdefault(kind, {})
    endpoints = live_endpoints(image, call.listener)
    described = []
    for name in names:
        topic = image.topics[name]
        partitions = known.get(name)
        if partitions is None:
            partitions = known[name] = _partitions(topic, image, endpoints, call.version)
        described.append(
            MetadataResponseTopic(
                name=name,
                topic_id=topic.id,
                is_internal=is_internal(name),
                partitions=partitions,
            )
        )
    return described


def _partitions(
    topic: TopicImage, image: MetadataImage, endpoints: dict[int, Endpoint], version: int
) -> list[MetadataResponsePartition]:
    return [
        _partition(index, state, image, endpoints, version=version)
        for index, state in enumerate(topic.partitions)
    ]


def _partition(
    index: int,
    state: PartitionState,
    image: MetadataImage,
    endpoints: dict[int, Endpoint],
    *,
    version: int,
) -> MetadataResponsePartition:
    view = view_partition(state, image, endpoints)
    error = view.error
    if error == ErrorCode.LISTENER_NOT_FOUND and version < LISTENER_NOT_FOUND_SINCE:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    replicas, isr = list(state.replicas), list(state.isr)
    if version == 0:
        # The oldest clients take every broker mentioned to be alive.
        replicas = [broker for broker in replicas if broker in endpoints]
        isr = [broker for broker in isr if broker in endpoints]
        complete = len(replicas) == len(state.replicas) and len(isr) == len(state.isr)
        if error == ErrorCode.NONE and not complete:
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=view.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=view.offline,
    )


HANDLER = Handler(ApiKey.METADATA, VersionRange(0, 12), handle)
