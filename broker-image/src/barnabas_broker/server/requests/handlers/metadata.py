"""Metadata: brokers, topics and leaders; where every client begins.

Asking about a topic that does not exist creates it, where broker and client agree to that. The
controller answers LEADER_NOT_AVAILABLE for such a topic and any other broker
UNKNOWN_TOPIC_OR_PARTITION: the client asks again, when every broker knows the topic (Kafka's
`AutoTopicCreationManager`).
"""

from asyncio import Future
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import (
    NO_CONTROLLER,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.cluster.views import live_endpoints, view_partition
from barnabas_broker.controller.requests import CreatedTopic, Outcome
from barnabas_broker.controller.topics import is_internal, name_fault
from barnabas_broker.security.acls import (
    CLUSTER_NAME,
    OPERATIONS_NOT_REQUESTED,
    AclOperation,
    ResourceType,
)
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.auto_creation import auto_create
from barnabas_broker.server.requests.first_metadata import after_first_metadata
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.codec import encode
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
# From here on a leader without the client's listener has an error code of its own.
LISTENER_NOT_FOUND_SINCE = 6


# An answer about so many partitions is kept as bytes: encoding a thousand takes 0.4 ms.
KEPT_PARTITIONS_MIN = 20
KEPT_BYTES_MAX = 8 << 20
# What names more topics would take more than a turn to be looked up by.
KEPT_TOPICS_MAX = 2_000
# Iterations between two reads of the clock, each of which costs as
# much as one.
GLANCES = 100
# An answer about more partitions is encoded in a thread.
ENCODED_AT_ONCE = 2_000

Answer = MetadataResponse | bytes | Future[bytes]


Found = Answer | Future[Work[Answer]]


def handle(request: MetadataRequest, call: RequestContext) -> Work[Found | Future[Work[Found]]]:
    """Answer for the topics asked for, through the listener that the request came in on."""
    waiting = after_first_metadata(call, lambda: _answer(request, call))
    return waiting if waiting is not None else (yield from _answer(request, call))


def _answer(request: MetadataRequest, call: RequestContext) -> Work[Found]:
    creatable, errors = yield from _to_create(request, call)
    if not creatable:
        return (yield from _response(request, call, errors))

    def answer(created: list[CreatedTopic]) -> Work[Answer]:
        pending = {topic.outcome.name: _not_yet(topic.outcome) for topic in created}
        return _response(request, call, errors | pending)

    return auto_create(creatable, call, answer)


def _not_yet(outcome: Outcome) -> ErrorCode:
    """The error code of a topic whose creation this request began."""
    begun = outcome.granted or outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS
    return ErrorCode.LEADER_NOT_AVAILABLE if begun else outcome.error


def _response(
    request: MetadataRequest, call: RequestContext, errors: Mapping[str, ErrorCode]
) -> Work[Answer]:
    """The answer from the current image; `errors` say why topics were not created."""
    asked = request.topics
    image = call.broker.image  # One for the whole answer, however many time slices it takes.
    if asked is None or (call.version == 0 and not asked):
        topics = yield from _all_topics(call, image)
    elif (yield from _is_malformed(asked, call)):
        # A whole-request error, which this response can only say topic by topic.
        topics = yield from each(
            asked, lambda topic: _refused(ErrorCode.INVALID_REQUEST, topic.name or "")
        )
    else:
        topics = yield from _some_topics(asked, call, image, errors)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = call.allowed_operations(
                    ResourceType.TOPIC, topic.name
                )
            yield
    response = MetadataResponse(
        brokers=_brokers(image, call.listener),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=_cluster_operations(request, call),
    )
    if len(topics) > KEPT_TOPICS_MAX:
        return response
    partitions = sum(len(topic.partitions) for topic in topics)
    if partitions < KEPT_PARTITIONS_MIN:
        return response
    return _encoded(response, call, image, at_once=partitions <= ENCODED_AT_ONCE)


def _encoded(
    response: MetadataResponse, call: RequestContext, image: MetadataImage, *, at_once: bool
) -> bytes | Future[bytes]:
    """The body of a large response, kept for as long as the image is the current one.

    A future of it where it is not encoded `at_once`, but in the thread for coding. The
    principal decides which topics are in it and with which errors and operations; that is part of
    the key.
    All else follows from the image, listener and version.
    """
    key = (
        call.listener,
        call.version,
        response.cluster_authorized_operations,
        tuple(
            (topic.name, topic.topic_id, topic.error_code, topic.topic_authorized_operations)
            for topic in response.topics
        ),
    )
    kept: dict[object, bytes] = image.memo.setdefault((__name__, "bodies"), {})
    body = kept.get(key)
    if body is not None:
        return body
    if at_once:
        body = encode(response, call.version)
        _keep(kept, key, body)
        return body

    def heed(encoding: Future[bytes]) -> None:
        if not encoding.cancelled() and encoding.exception() is None:
            _keep(kept, key, encoding.result())

    encoding = call.broker.heavy.code(partial(encode, response, call.version))
    encoding.add_done_callback(heed)
    return encoding


def _keep(kept: dict[object, bytes], key: object, body: bytes) -> None:
    if sum(map(len, kept.values())) + len(body) > KEPT_BYTES_MAX:
        kept.clear()
    kept[key] = body


def _is_malformed(asked: Sequence[MetadataRequestTopic], call: RequestContext) -> Work[bool]:
    """Whether a topic is meant by something else than its name where only that can be."""
    if call.version >= TOPIC_IDS_SINCE:
        return False
    return (
        yield from _glance(asked, lambda topic: topic.name is None or topic.topic_id != ZERO_UUID)
    )


def _glance(
    asked: Sequence[MetadataRequestTopic], ends: Callable[[MetadataRequestTopic], bool]
) -> Work[bool]:
    """Whether `ends` is true of a topic; it is called for one after the other until then."""
    for count, topic in enumerate(asked, 1):
        if ends(topic):
            return True
        if not count % GLANCES:
            yield
    return False


def _brokers(image: MetadataImage, listener: str) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(
            node_id=broker, host=endpoint.host, port=endpoint.port, rack=image.brokers[broker].rack
        )
        for broker, endpoint in sorted(live_endpoints(image, listener).items())
    ]


def _cluster_operations(request: MetadataRequest, call: RequestContext) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_REQUESTED
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return 0
    return call.allowed_operations(ResourceType.CLUSTER, CLUSTER_NAME)


def _may_describe(call: RequestContext, name: str, *, audited: bool = True) -> bool:
    return call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name, audited=audited)


def _all_topics(call: RequestContext, image: MetadataImage) -> Work[list[MetadataResponseTopic]]:
    """Every topic that the caller may know of; the others are not mentioned."""
    describe = _describing(call, image)
    topics = []
    for name in image.topics:
        if _may_describe(call, name, audited=False):
            topics.append(describe(name))
        yield
    return topics


def _names(asked: Sequence[MetadataRequestTopic]) -> Work[dict[str, None] | None]:
    """The topics that are asked for by name, each once; None where they are meant by id."""
    names: dict[str, None] = {}

    def note(topic: MetadataRequestTopic) -> bool:
        if topic.name is not None:
            names[topic.name] = None
        return topic.topic_id != ZERO_UUID

    return None if (yield from _glance(asked, note)) else names


def _some_topics(
    asked: Sequence[MetadataRequestTopic],
    call: RequestContext,
    image: MetadataImage,
    errors: Mapping[str, ErrorCode],
) -> Work[list[MetadataResponseTopic]]:
    names = yield from _names(asked)
    describe = _describing(call, image)
    if names is None:
        ids: dict[UUID, None] = {}

        def note(topic: MetadataRequestTopic) -> bool:
            if topic.topic_id != ZERO_UUID:
                ids[topic.topic_id] = None
            return False

        yield from _glance(asked, note)
        return (yield from each(ids, partial(_by_id, call, image, describe)))

    def answer(name: str) -> MetadataResponseTopic:
        if not _may_describe(call, name):
            return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        if image.controller_id == NO_CONTROLLER:  # The topics are not known yet.
            return _refused(ErrorCode.LEADER_NOT_AVAILABLE, name)
        if name in errors:
            return _refused(errors[name], name)
        if name not in image.topics:
            return _refused(_why_unknown(name), name)
        return describe(name)

    return (yield from each(names, answer))


def _why_unknown(name: str) -> ErrorCode:
    if name_fault(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _to_create(
    request: MetadataRequest, call: RequestContext
) -> Work[tuple[list[str], dict[str, ErrorCode]]]:
    """Unknown topics that this request creates, and why others that it asks for are not."""
    asked = request.topics
    if (
        not asked
        or not request.allow_auto_topic_creation
        or not call.broker.settings[keys.AUTO_CREATE_TOPICS_ENABLE]
        or (yield from _is_malformed(asked, call))
    ):
        return [], {}
    known = call.broker.image.topics
    creatable: list[str] = []
    errors: dict[str, ErrorCode] = {}
    for name in (yield from _names(asked)) or ():
        yield
        if name in known:
            continue
        if not _may_describe(call, name):
            continue  # In the response already.
        if not (
            call.allowed_on_cluster(AclOperation.CREATE, audited=False)
            or call.allowed(AclOperation.CREATE, ResourceType.TOPIC, name)
        ):
            errors[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name_fault(name) is None:
            creatable.append(name)
    return creatable, errors


def _refused(
    code: ErrorCode, name: str | None, topic_id: UUID = ZERO_UUID
) -> MetadataResponseTopic:
    # As Kafka: a topic that a client may not describe is never called internal.
    hidden = code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    internal = name is not None and not hidden and is_internal(name)
    return MetadataResponseTopic(
        error_code=code, name=name, topic_id=topic_id, is_internal=internal
    )


def _by_id(
    call: RequestContext,
    image: MetadataImage,
    describe: Callable[[str], MetadataResponseTopic],
    topic_id: UUID,
) -> MetadataResponseTopic:
    topic = image.topic_by_id(topic_id)
    if topic is None:
        return _refused(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    if not _may_describe(call, topic.name):
        return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id)
    return describe(topic.name)


def _describing(
    call: RequestContext, image: MetadataImage
) -> Callable[[str], MetadataResponseTopic]:
    """What describes topics of the image, by name."""
    # Clients ask over and over while nothing changes, and building thousands of partitions is the
    # costly part of the answer; they are made once for each image, listener and kind of version.
    # A log directory that fails here changes the answer too.
    replicas = call.broker.replicas
    dialect = (call.version == 0, call.version < LISTENER_NOT_FOUND_SINCE)
    kind = (__name__, call.listener, dialect, replicas.reach_version)
    known: dict[str, list[MetadataResponsePartition]] = image.memo.setdefault(kind, {})
    endpoints = live_endpoints(image, call.listener)

    def describe(name: str) -> MetadataResponseTopic:
        topic = image.topics[name]
        partitions = known.get(name)
        if partitions is None:
            try:
                seen = replicas.as_served(topic)
                partitions = known[name] = _partitions(seen, image, endpoints, call.version)
            except Exception as error:  # The boundary between one topic and the others.
                return _refused(refusal(error, "Metadata", name).code, name, topic.id)
        return MetadataResponseTopic(
            name=name,
            topic_id=topic.id,
            is_internal=is_internal(name),
            partitions=partitions,
        )

    return describe


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


HANDLER = Handler(ApiKey.METADATA, VersionRange(0, 12), handle, large=True)
