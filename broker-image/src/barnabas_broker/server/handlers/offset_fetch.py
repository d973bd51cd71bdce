"""OffsetFetch: how far groups have read (KIP-709 asks about several at once).

Version 0 belongs to consumers that keep their offsets in ZooKeeper and is not served. There are no
transactions yet, so every offset is stable and `require_stable` changes nothing.
"""

from collections.abc import Mapping

from barnabas_broker.coordinator.group.records import CommittedOffset
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_OFFSET, TopicPartition
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

GROUP_ERROR_SINCE = 2
SEVERAL_GROUPS_SINCE = 8

Offsets = Mapping[TopicPartition, CommittedOffset]


def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    """Tell the offsets of partitions asked for, or of all that the caller may know of."""
    if call.version >= SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=[_fetched(group, call) for group in request.groups])
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in request.topics
        ]
    asked = OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)
    return _as_one(asked, _fetched(asked, call), call)


def _fetched(asked: OffsetFetchRequestGroup, call: Call) -> OffsetFetchResponseGroup:
    group_id = asked.group_id
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponseGroup(group_id=group_id, error_code=code)
    try:
        group = call.broker.groups.group(group_id)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group_id, error_code=error.code)
    offsets: Offsets = {} if group is None else group.offsets
    if asked.topics is None:
        topics = _all_topics(offsets, call)
    else:
        topics = [_topic(topic, offsets, call) for topic in asked.topics]
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _all_topics(offsets: Offsets, call: Call) -> list[OffsetFetchResponseTopics]:
    """Everything committed, without the topics that the caller may not know of."""
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (name, partition), committed in offsets.items():
        topic = topics.setdefault(name, OffsetFetchResponseTopics(name=name))
        topic.partitions.append(_partition(partition, committed))
    return [topic for topic in topics.values() if _may_describe(topic.name, call)]


def _topic(
    asked: OffsetFetchRequestTopics, offsets: Offsets, call: Call
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


def _may_describe(topic: str, call: Call) -> bool:
    return call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


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
    asked: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup, call: Call
) -> OffsetFetchResponse:
    """The answer about one group, in the form that it has before version 8."""
    code = ErrorCode(answer.error_code)
    topics = answer.topics
    if code and call.version < GROUP_ERROR_SINCE:
        topics = [_refused_topic(topic, code) for topic in asked.topics or []]
    return OffsetFetchResponse(
        error_code=code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


HANDLER = Handler(ApiKey.OFFSET_FETCH, VersionRange(1, 9), handle)
