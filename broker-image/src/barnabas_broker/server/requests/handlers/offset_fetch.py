"""OffsetFetch: how far groups have read (KIP-709 asks about several at once).

Version 0 belongs to consumers that keep their offsets in ZooKeeper, where they are read. With
`require_stable` an offset that an open transaction may replace is withheld (KIP-447).
"""

from asyncio import Future
from collections.abc import Mapping
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.group.commits import epoch_fault
from barnabas_broker.coordinator.group.records import CommittedOffset
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.process.deferred_responses import then, together
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_EPOCH, NO_OFFSET, TopicPartition
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas_kafka.protocol.registry import ApiKey

COORDINATOR_SINCE = 1
GROUP_ERROR_SINCE = 2
SEVERAL_GROUPS_SINCE = 8

Offsets = Mapping[TopicPartition, CommittedOffset]


def handle(
    request: OffsetFetchRequest, call: RequestContext
) -> Work[Work[OffsetFetchResponse] | Future[Work[OffsetFetchResponse]]]:
    """The offsets of the requested partitions, or of all that the caller may describe.

    An offset committed a moment ago waits until its record counts, so that it never goes back.
    """
    if call.version < COORDINATOR_SINCE:
        return (yield from _in_znodes(request, call))
    several = call.version >= SEVERAL_GROUPS_SINCE
    request.groups = yield from _distinct_groups(request.groups)
    names = [group.group_id for group in request.groups] if several else [request.group_id]
    found = yield from each(names, partial(_settled, call))
    unsettled: list[Future[None] | None] = [one for one in found if one is not None]
    return together(unsettled, lambda _: _answer(request, call))


def _distinct_groups(groups: list[OffsetFetchRequestGroup]) -> Work[list[OffsetFetchRequestGroup]]:
    """Each group once, with all the topics that are asked for wherever it is named.

    An answer that repeated the same each time would grow beyond any memory.
    """
    named: dict[str, OffsetFetchRequestGroup] = {}
    for group in groups:
        known = named.setdefault(group.group_id, group)
        if known is not group and known.topics is not None:
            if group.topics is None:
                known.topics = None
            else:
                known.topics += group.topics
        yield
    return list(named.values())


def _distinct_topics(
    topics: list[OffsetFetchRequestTopics],
) -> Work[list[OffsetFetchRequestTopics]]:
    """Each topic once, and each partition of it."""
    named: dict[str, dict[int, None]] = {}
    for topic in topics:
        named.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        yield
    return [
        OffsetFetchRequestTopics(name=name, partition_indexes=list(indexes))
        for name, indexes in named.items()
    ]


def _in_znodes(
    request: OffsetFetchRequest, call: RequestContext
) -> Work[Work[OffsetFetchResponse] | Future[Work[OffsetFetchResponse]]]:
    """The offsets in ZooKeeper; a partition without one is unknown there."""
    faults: dict[TopicPartition, ErrorCode] = {}
    wanted: list[TopicPartition] = []
    group_fault: ErrorCode | None = None
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, request.group_id):
        group_fault = ErrorCode.GROUP_AUTHORIZATION_FAILED
    for topic in request.topics or []:
        fault = group_fault
        if fault is None and not _may_describe(topic.name, call):
            fault = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for number in topic.partition_indexes:
            partition = TopicPartition(topic.name, number)
            code = fault
            if code is None and call.broker.image.partition(partition) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code is None:
                wanted.append(partition)
            else:
                faults[partition] = code
            yield

    def answer(
        found: dict[TopicPartition, int],
        missing: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ) -> Work[OffsetFetchResponse]:
        response = OffsetFetchResponse()
        for topic in request.topics or []:
            answered = OffsetFetchResponseTopic(name=topic.name)
            for number in topic.partition_indexes:
                partition = TopicPartition(topic.name, number)
                code = ErrorCode.NONE if partition in found else faults.get(partition, missing)
                answered.partitions.append(
                    OffsetFetchResponsePartition(
                        partition_index=number,
                        committed_offset=found.get(partition, NO_OFFSET),
                        metadata="",
                        error_code=code,
                    )
                )
                yield
            response.topics.append(answered)
        return response

    return then(
        call.broker.zookeeper_offsets.fetch(request.group_id, wanted),
        answer,
        lambda error: answer({}, error.code),
    )


def _settled(call: RequestContext, group_id: str) -> Future[None] | None:
    try:
        return call.broker.groups.settled(group_id)
    except Exception as error:
        refusal(error, "OffsetFetch", group_id)
        return None  # The answer will say why.


def _answer(request: OffsetFetchRequest, call: RequestContext) -> Work[OffsetFetchResponse]:
    stable = request.require_stable
    if call.version >= SEVERAL_GROUPS_SINCE:
        response = OffsetFetchResponse()
        for group in request.groups:
            response.groups.append((yield from _fetched(group, call, stable=stable)))
            yield
        return response
    topics = None
    if request.topics is not None:
        topics = yield from each(
            request.topics,
            lambda it: OffsetFetchRequestTopics(
                name=it.name, partition_indexes=it.partition_indexes
            ),
        )
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    fetched = yield from _fetched(asked, call, stable=stable)
    return (yield from _as_one(asked, fetched, call))


def _fetched(
    asked: OffsetFetchRequestGroup, call: RequestContext, *, stable: bool
) -> Work[OffsetFetchResponseGroup]:
    group_id = asked.group_id
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponseGroup(group_id=group_id, error_code=code)
    try:
        group = call.broker.groups.group(group_id)
    except Exception as error:
        code = refusal(error, "OffsetFetch", group_id).code
        return OffsetFetchResponseGroup(group_id=group_id, error_code=code)
    if group is not None and group.consumers is not None and asked.member_id:
        fault = epoch_fault(group.consumers, asked.member_id, asked.member_epoch)
        if fault is not None:
            return OffsetFetchResponseGroup(group_id=group_id, error_code=fault)
    offsets: Offsets = {} if group is None else group.offsets
    # Read first: a transaction that commits meanwhile is included, or asked for again.
    unstable = group.pending_offsets.partitions if stable and group is not None else frozenset()
    if asked.topics is None:
        topics = yield from _all_topics(offsets, call)
    else:
        distinct = yield from _distinct_topics(asked.topics)
        topics = yield from each(distinct, partial(_topic, call, offsets))
    if unstable:
        yield from each(topics, partial(_hide_unstable, unstable))
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _hide_unstable(unstable: frozenset[TopicPartition], topic: OffsetFetchResponseTopics) -> None:
    """Refuse offsets in open transactions to requests of stable offsets (KIP-447)."""
    for it in topic.partitions:
        if not it.error_code and TopicPartition(topic.name, it.partition_index) in unstable:
            it.committed_offset, it.metadata = NO_OFFSET, ""
            it.committed_leader_epoch = NO_EPOCH
            it.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT


def _all_topics(offsets: Offsets, call: RequestContext) -> Work[list[OffsetFetchResponseTopics]]:
    """Everything committed, without the topics that the caller may not know of."""
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (name, partition), committed in list(offsets.items()):
        topic = topics.setdefault(name, OffsetFetchResponseTopics(name=name))
        topic.partitions.append(_partition(partition, committed))
        yield
    return [topic for topic in topics.values() if _may_describe(topic.name, call, audited=False)]


def _topic(
    call: RequestContext, offsets: Offsets, asked: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    if not _may_describe(asked.name, call):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _refused_topic(asked, code)
    return OffsetFetchResponseTopics(
        name=asked.name,
        partitions=[
            _partition(partition, offsets.get(TopicPartition(asked.name, partition)))
            for partition in asked.partition_indexes
        ],
    )


def _refused_topic(asked: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    answers = [_partition(partition, None) for partition in asked.partition_indexes]
    for answer in answers:
        answer.error_code = code
    return OffsetFetchResponseTopics(name=asked.name, partitions=answers)


def _may_describe(topic: str, call: RequestContext, *, audited: bool = True) -> bool:
    return call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic, audited=audited)


def _partition(partition: int, committed: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=NO_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _as_one(
    asked: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup, call: RequestContext
) -> Work[OffsetFetchResponse]:
    """The answer about one group, in the form that it has before version 8."""
    code = ErrorCode(answer.error_code)
    topics = answer.topics
    if code and call.version < GROUP_ERROR_SINCE:
        topics = [_refused_topic(topic, code) for topic in asked.topics or []]
    return OffsetFetchResponse(error_code=code, topics=(yield from each(topics, _as_older)))


def _as_older(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartition(
                partition_index=partition.partition_index,
                committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch,
                metadata=partition.metadata,
                error_code=partition.error_code,
            )
            for partition in topic.partitions
        ],
    )


HANDLER = Handler(ApiKey.OFFSET_FETCH, VersionRange(0, 9), handle, large=True)
