"""Operations on consumer groups: list, describe, delete, and their committed offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_kafka.client.cluster import CoordinatorOf, CoordinatorType, OneBroker, Target
from barnabas_kafka.client.errors import BrokerError, check
from barnabas_kafka.client.operation import (
    Ask,
    Operation,
    Outcomes,
    Results,
    every,
    outcome,
    unique,
)
from barnabas_kafka.client.partitions import by_topic
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_EPOCH, NO_OFFSET, TopicPartition
from barnabas_kafka.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas_kafka.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas_kafka.protocol.registry import ApiKey

BY_NAME_NEWEST: Final = 9
"""Of OffsetFetch and OffsetCommit; later versions name topics by id."""
OFFSET_FETCH_OF_GROUPS: Final = 8
OFFSET_FETCH_OF_ALL: Final = 2


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group of one coordinator. `state` is empty before Kafka 2.6, `type` before 3.8."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member; `metadata` and `assignment` are in the format of the group's protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group of the classic protocol. One that does not exist has the state Dead."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A position of a group in a partition."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""


def list_groups() -> Operation[Results[int, tuple[GroupListing, ...]]]:
    """The groups of the cluster, by the broker that coordinates them."""

    def read(
        ask: Ask[int], response: ListGroupsResponse
    ) -> Outcomes[int, tuple[GroupListing, ...]]:
        check(response.error_code)
        listed = (
            GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in response.groups
        )
        return {ask.broker: tuple(listed)}

    return Operation(
        name="list groups",
        keys=None,
        target=OneBroker,
        request=lambda _: ListGroupsRequest(),
        api_key=ApiKey.LIST_GROUPS,
        read=read,
        finish=every,
    )


def describe_groups(groups: Iterable[str]) -> Operation[Results[str, GroupDescription]]:
    """Groups of the classic protocol with their members."""

    def read(ask: Ask[str], response: DescribeGroupsResponse) -> Outcomes[str, GroupDescription]:
        return {
            each.group_id: outcome(each.error_code, each.error_message, _description(each))
            for each in response.groups
        }

    return Operation(
        name="describe groups",
        keys=unique(groups),
        target=_coordinator,
        request=lambda ask: DescribeGroupsRequest(groups=list(ask.keys)),
        api_key=ApiKey.DESCRIBE_GROUPS,
        read=read,
        finish=every,
    )


def delete_groups(groups: Iterable[str]) -> Operation[Results[str, None]]:
    """Delete groups without members, with their offsets."""

    def read(ask: Ask[str], response: DeleteGroupsResponse) -> Outcomes[str, None]:
        return {
            each.group_id: outcome(each.error_code, each.error_message, None)
            for each in response.results
        }

    return Operation(
        name="delete groups",
        keys=unique(groups),
        target=_coordinator,
        request=lambda ask: DeleteGroupsRequest(groups_names=list(ask.keys)),
        api_key=ApiKey.DELETE_GROUPS,
        read=read,
        finish=every,
    )


def fetch_offsets(
    groups: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool = False
) -> Operation[Results[str, Mapping[TopicPartition, CommittedOffset | BrokerError]]]:
    """The committed offsets of groups, of these partitions or of all (None).

    A partition without a committed offset is left out. With `require_stable` an offset that a
    transaction has not decided is UNSTABLE_OFFSET_COMMIT.
    """
    wanted = {group: None if each is None else unique(each) for group, each in groups.items()}

    def request(ask: Ask[str]) -> OffsetFetchRequest:
        stable = require_stable and ask.version >= 7
        if ask.version >= OFFSET_FETCH_OF_GROUPS:
            members = [_fetched_group(group, wanted[group]) for group in ask.keys]
            return OffsetFetchRequest(groups=members, require_stable=stable)
        (group,) = ask.keys
        partitions = wanted[group]
        topics: list[OffsetFetchRequestTopic] | None = None
        if partitions is not None or ask.version < OFFSET_FETCH_OF_ALL:
            topics = [
                OffsetFetchRequestTopic(
                    name=topic, partition_indexes=[each.partition for each in members_]
                )
                for topic, members_ in by_topic(partitions or ())
            ]
        return OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable)

    def read(
        ask: Ask[str], response: OffsetFetchResponse
    ) -> Outcomes[str, Mapping[TopicPartition, CommittedOffset | BrokerError]]:
        if ask.version >= OFFSET_FETCH_OF_GROUPS:
            return {
                each.group_id: outcome(each.error_code, None, _committed(each.topics))
                for each in response.groups
            }
        return {ask.keys[0]: outcome(response.error_code, None, _committed(response.topics))}

    return Operation(
        name="fetch offsets",
        keys=list(wanted),
        target=_coordinator,
        request=request,
        api_key=ApiKey.OFFSET_FETCH,
        read=read,
        finish=every,
        newest=BY_NAME_NEWEST,
        batch_max=1,  # Before version 8 a request has one group.
    )


def commit_offsets(
    group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Operation[Results[TopicPartition, None]]:
    """Set the offsets of a group without members, as `kafka-consumer-groups --reset-offsets`."""

    def request(ask: Ask[TopicPartition]) -> OffsetCommitRequest:
        return OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=each.partition,
                            committed_offset=offsets[each].offset,
                            committed_leader_epoch=offsets[each].leader_epoch,
                            committed_metadata=offsets[each].metadata,
                        )
                        for each in members
                    ],
                )
                for topic, members in by_topic(ask.keys)
            ],
        )

    def read(
        ask: Ask[TopicPartition], response: OffsetCommitResponse
    ) -> Outcomes[TopicPartition, None]:
        return {
            TopicPartition(topic.name, each.partition_index): outcome(each.error_code, None, None)
            for topic in response.topics
            for each in topic.partitions
        }

    return Operation(
        name="commit offsets",
        keys=list(offsets),
        target=lambda _: _coordinator(group),
        request=request,
        api_key=ApiKey.OFFSET_COMMIT,
        read=read,
        finish=every,
        newest=BY_NAME_NEWEST,
    )


def delete_offsets(
    group: str, partitions: Iterable[TopicPartition]
) -> Operation[Results[TopicPartition, None]]:
    """Remove offsets of a group that is not subscribed to the topics."""

    def request(ask: Ask[TopicPartition]) -> OffsetDeleteRequest:
        return OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=each.partition)
                        for each in members
                    ],
                )
                for topic, members in by_topic(ask.keys)
            ],
        )

    def read(
        ask: Ask[TopicPartition], response: OffsetDeleteResponse
    ) -> Outcomes[TopicPartition, None]:
        check(response.error_code)
        return {
            TopicPartition(topic.name, each.partition_index): outcome(each.error_code, None, None)
            for topic in response.topics
            for each in topic.partitions
        }

    return Operation(
        name="delete offsets",
        keys=unique(partitions),
        target=lambda _: _coordinator(group),
        request=request,
        api_key=ApiKey.OFFSET_DELETE,
        read=read,
        finish=every,
    )


def _coordinator(group: str) -> Target:
    return CoordinatorOf(CoordinatorType.GROUP, group)


def _description(group: DescribedGroup) -> GroupDescription:
    return GroupDescription(
        group_id=group.group_id,
        state=group.group_state,
        protocol_type=group.protocol_type,
        protocol=group.protocol_data,
        members=tuple(
            GroupMember(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.client_host,
                bytes(each.member_metadata),
                bytes(each.member_assignment),
            )
            for each in group.members
        ),
    )


def _fetched_group(
    group: str, partitions: Iterable[TopicPartition] | None
) -> OffsetFetchRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=topic, partition_indexes=[each.partition for each in members]
            )
            for topic, members in by_topic(partitions)
        ]
    return OffsetFetchRequestGroup(group_id=group, topics=topics)


def _committed(topics: Iterable[Any]) -> Mapping[TopicPartition, CommittedOffset | BrokerError]:
    found: dict[TopicPartition, CommittedOffset | BrokerError] = {}
    for topic in topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code != ErrorCode.NONE:
                found[partition] = BrokerError(each.error_code)
            elif each.committed_offset != NO_OFFSET:
                found[partition] = CommittedOffset(
                    each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                )
    return found
