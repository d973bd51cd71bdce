"""Members of classic groups as two brokers are asked about them, request by request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import Subscription
from barnabas_kafka.protocol.embedded import pack
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.oracle.sides import Side

#: No member is missed while a busy machine starts the next broker.
SESSION_MS: Final = 600_000
#: What passes by itself: a topic of groups being created, a coordinator that loads.
PASSING: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}  # fmt: skip


def await_coordinator(side: Side, group: str) -> None:
    """Wait until the group has a coordinator that has read what there is of it."""
    side.wait(
        FindCoordinatorRequest(coordinator_keys=[group]),
        4,
        settled=lambda answer: not answer.coordinators[0].error_code,
    )
    side.wait(
        DescribeGroupsRequest(groups=[group]),
        5,
        settled=lambda answer: answer.groups[0].error_code not in PASSING,
    )


def fetch_offsets(
    *groups: str, topic: str | None = None, partitions: Sequence[int] = (0,), stable: bool = False
) -> OffsetFetchRequest:
    """OffsetFetch, in version 8 or 9, of a topic, or of all there is in these groups."""
    topics = None
    if topic is not None:
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    wanted = [OffsetFetchRequestGroup(group_id=group, topics=topics) for group in groups]
    return OffsetFetchRequest(groups=wanted, require_stable=stable)


@dataclass
class Member:
    """One member, alone in its group unless the test does more."""

    side: Side
    group: str
    topics: Sequence[str] = ()
    instance: str | None = None
    id: str = ""
    generation: int = -1

    def join(self, label: str, version: int = 7, **changed: Any) -> Any:
        """JoinGroup; what is granted is remembered."""
        answer = self.side.ask(label, self.joining(**changed), version)
        self.id, self.generation = answer.member_id, answer.generation_id
        return answer

    def joining(
        self, protocols: Mapping[str, bytes] | None = None, **changed: Any
    ) -> JoinGroupRequest:
        """JoinGroup of this member."""
        wanted = pack(Subscription(topics=list(self.topics)), 1)
        offered = {"range": wanted} if protocols is None else protocols
        fields: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": SESSION_MS,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": [
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in offered.items()
            ],
        }
        return JoinGroupRequest(**(fields | changed))

    def enter(self, label: str) -> None:
        """Become the only member, which leads, and hand itself what there is."""
        if self.instance is None:
            self.join(f"{label} asks for an id")
        answer = self.join(f"{label} joins")
        assert answer.error_code == ErrorCode.NONE, answer
        self.side.ask(f"{label} syncs", self.syncing(b"what it has"), 5)

    def syncing(self, share: bytes | None = None, **changed: Any) -> SyncGroupRequest:
        """SyncGroup, of a leader if there is a share to hand out, which is its own."""
        shares = [] if share is None else [
            SyncGroupRequestAssignment(member_id=self.id, assignment=share)
        ]  # fmt: skip
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": shares,
        }
        return SyncGroupRequest(**(fields | changed))

    def beating(self, **changed: Any) -> HeartbeatRequest:
        """Heartbeat."""
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }
        return HeartbeatRequest(**(fields | changed))

    def leaving(self) -> LeaveGroupRequest:
        """LeaveGroup, in version 3 or later."""
        mine = MemberIdentity(member_id=self.id, group_instance_id=self.instance)
        return LeaveGroupRequest(group_id=self.group, members=[mine])

    def committing(
        self, topic: str, offsets: Sequence[int] = (5,), text: str | None = "", **changed: Any
    ) -> OffsetCommitRequest:
        """OffsetCommit of the first partitions of a topic."""
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=text
            )
            for number, offset in enumerate(offsets)
        ]
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "topics": [OffsetCommitRequestTopic(name=topic, partitions=partitions)],
        }
        return OffsetCommitRequest(**(fields | changed))
