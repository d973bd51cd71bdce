"""OffsetCommit: remember how far a group has read.

Version 0 belongs to consumers that keep their offsets in ZooKeeper and is not served.
"""

from barnabas_broker.coordinator.group.commits import refused_commit
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.group.turns import Turn, Waiter
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    """Commit what the caller may and what exists; answers keep the order of the request."""
    if not call.allowed(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return refused_commit(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    faults = _faults(request, call)
    asked = request.topics
    request.topics = [
        OffsetCommitRequestTopic(name=topic.name, partitions=kept)
        for topic in asked
        if (
            kept := [
                each
                for each in topic.partitions
                if TopicPartition(topic.name, each.partition_index) not in faults
            ]
        )
    ]
    if request.topics:
        for topic_answer in _committed(request, call).topics:
            for answer in topic_answer.partitions:
                partition = TopicPartition(topic_answer.name, answer.partition_index)
                faults[partition] = ErrorCode(answer.error_code)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=faults[TopicPartition(topic.name, each.partition_index)],
                    )
                    for each in topic.partitions
                ],
            )
            for topic in asked
        ]
    )


def _committed(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    def step(shard: Shard, waiter: Waiter, now_ms: int) -> Turn:
        return shard.commit(request, waiter, now_ms)

    try:
        response: OffsetCommitResponse = call.broker.groups.ask(request.group_id, step)
    except KafkaError as error:
        return refused_commit(request, error.code)
    return response


def _faults(request: OffsetCommitRequest, call: Call) -> dict[TopicPartition, ErrorCode]:
    """The partitions that are not committed, whatever the group says."""
    faults: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topics:
        allowed = call.allowed(AclOperation.READ, ResourceType.TOPIC, topic.name)
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if not allowed:
                faults[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif call.broker.image.partition(partition) is None:
                faults[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return faults


HANDLER = Handler(ApiKey.OFFSET_COMMIT, VersionRange(1, 9), handle)
