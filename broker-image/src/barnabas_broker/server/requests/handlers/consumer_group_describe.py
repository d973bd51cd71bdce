"""ConsumerGroupDescribe: groups of the consumer protocol, with current and target assignments.

A group with an assigned topic that the caller may not describe is not shown, as in Kafka. The
topics of its subscriptions are not checked: they are names that clients sent.
"""

from collections.abc import Iterable

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.group.consumer import target
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import NOTHING, ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import Partitions, by_topic
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.handlers.consumer_group_heartbeat import offered
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from barnabas_kafka.protocol.registry import ApiKey

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1
"""The types of members, by the protocol that they use."""


def handle(
    request: ConsumerGroupDescribeRequest, call: RequestContext
) -> Work[ConsumerGroupDescribeResponse]:
    """Describe each group by itself, and once, however often it is named."""
    groups = []
    for group_id in dict.fromkeys(request.group_ids):
        try:
            answer = _described(group_id, call)
        except Exception as error:
            refused = refusal(error, "ConsumerGroupDescribe", group_id)
            answer = DescribedGroup(
                group_id=group_id, error_code=refused.code, error_message=refused.message
            )
        else:
            if request.include_authorized_operations:
                answer.authorized_operations = call.allowed_operations(ResourceType.GROUP, group_id)
        groups.append(answer)
        yield
    return ConsumerGroupDescribeResponse(groups=groups)


def _described(group_id: str, call: RequestContext) -> DescribedGroup:
    if not offered(call.broker):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    found: Group | None = call.broker.groups.group(group_id)
    if found is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group = found.consumers
    if group is None:
        message = f"Group {group_id} is not a consumer group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
    members = [_member(each, group, call) for each in group.members.values()]
    for name in _assigned_topics(members):
        if not call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            message = (
                "The group has described topic(s) that the client is not authorized to describe."
            )
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message)
    assignors = call.broker.groups.shard(group_id).limits.consumers.assignors
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=target.elected_assignor(group.members.values(), assignors),
        members=members,
    )


def _assigned_topics(members: Iterable[Member]) -> frozenset[str]:
    """The names of the topics in the current and target assignments."""
    return frozenset(
        topic.topic_name
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )


def _member(member: ConsumerMember, group: ConsumerGroup, call: RequestContext) -> Member:
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assigned, call),
        target_assignment=_assignment(group.target.get(member.id, NOTHING), call),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Partitions, call: RequestContext) -> Assignment:
    """Partitions with the names of their topics; those of deleted topics are left out."""
    names = call.broker.image.topic_ids
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic.topic_id,
                topic_name=names[topic.topic_id],
                partitions=topic.partitions,
            )
            for topic in by_topic(partitions)
            if topic.topic_id in names
        ]
    )


HANDLER = Handler(
    ApiKey.CONSUMER_GROUP_DESCRIBE, VersionRange(0, 1), handle, large=True, offered=offered
)
