"""What members ask of their group, as values: the same whichever codec has read the request.

`plain_heartbeat` and `plain_rebalance` read these from frames; `of` makes them of messages that the
declared codec has read. Fields have the names of the messages'.
"""

from typing import NamedTuple, Self

from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest
from barnabas_kafka.protocol.messages.sync_group import SyncGroupRequest

#: Index of a partition, offset, leader epoch, and metadata as text and as it was written.
CommittedPartition = tuple[int, int, int, str, bytes]
#: Name of a topic, as text and as it was written, and its partitions.
CommittedTopic = tuple[str, bytes, list[CommittedPartition]]


#: OffsetCommit without a retention of its own: group as text and as it was written, generation,
#: member, group instance, and the topics. No class, as there is one for each of very many.
GroupCommit = tuple[str, bytes, int, str, str | None, list[CommittedTopic]]


class GroupHeartbeat(NamedTuple):
    """Heartbeat."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

    @classmethod
    def of(cls, request: HeartbeatRequest) -> Self:
        """The content of a message."""
        return cls(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )


class GroupJoin(NamedTuple):
    """JoinGroup."""

    client_id: str
    """Empty where it is null."""
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Names and metadata."""

    @classmethod
    def of(cls, request: JoinGroupRequest, client_id: str | None) -> Self:
        """The content of a message."""
        return cls(
            client_id or "",
            request.group_id,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.member_id,
            request.group_instance_id,
            request.protocol_type,
            tuple((each.name, each.metadata) for each in request.protocols),
        )


class GroupSync(NamedTuple):
    """SyncGroup."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[tuple[str, bytes]]
    """Member ids and assignments."""

    @classmethod
    def of(cls, request: SyncGroupRequest) -> Self:
        """The content of a message."""
        return cls(
            request.group_id,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
            request.protocol_type,
            request.protocol_name,
            [(each.member_id, each.assignment) for each in request.assignments],
        )
