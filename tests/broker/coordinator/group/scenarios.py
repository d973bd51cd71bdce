"""A shard, a clock that only scenarios move, and actors who send requests.

What the product's shell does with a turn is done here in the same order: records are replayed,
then answers are handed out. `fail_writes` makes every append fail with that error.
"""

from dataclasses import replace
from typing import Any

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.memory import (
    GROUP_BYTES,
    PARTITION_BYTES,
    PENDING_BYTES,
    PROTOCOL_BYTES,
)
from barnabas_broker.coordinator.group.records import Record
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.embedded import ConsumerProtocolSubscription
from barnabas_kafka.protocol.group_values import GroupHeartbeat, GroupJoin, GroupSync
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

LIMITS = Limits(
    session_min_ms=6000,
    session_max_ms=60_000,
    initial_delay_ms=0,
    members_max=100,
    metadata_bytes_max=10,
    retention_ms=100_000,
)
SESSION_MS = 10_000
REBALANCE_MS = 30_000
TEAM = "team"


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer."""
    return b"\0\0" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)


def counted(shard: Shard) -> int:
    """The bytes that the groups of a shard hold, added up anew."""
    return sum(_counted(group) for group in shard.groups.values())


def _counted(group: Group) -> int:
    total = GROUP_BYTES + len(group.id)
    total += sum(PENDING_BYTES + len(each) for each in group.pending)
    total += sum(each.memory_bytes for each in group.members.values())
    if group.consumers is None:
        return total
    consumers = group.consumers
    for names in (consumers.topics, *consumers.expressions.values()):
        total += sum(PROTOCOL_BYTES + len(name) for name in names)
    for partitions in consumers.target.values():
        total += PARTITION_BYTES * len(partitions)
    for member in consumers.members.values():
        total += member.memory_bytes + PARTITION_BYTES * len(member.held)
    return total


class Scenario:
    """One group's life. Every request gives a number, under which its answer is found."""

    def __init__(self, **limits: Any) -> None:
        self.now_ms = 1_000_000
        self.steady_ms = 5000
        self.ids = 0
        self.limits = replace(LIMITS, **limits)
        self.shard = self._shard()
        self.written: list[Record] = []
        self.answers: dict[int, Any] = {}
        self.fail_writes: ErrorCode | None = None
        self.asked = 0

    def _shard(self) -> Shard:
        return Shard(self.limits, new_id=self.new_id, steady_ms=lambda: self.steady_ms)

    def new_id(self) -> str:
        self.ids += 1
        return str(self.ids)

    @property
    def group(self) -> Group:
        return self.shard.groups[TEAM]

    @property
    def state(self) -> str:
        return self.group.state.value

    def perform(self, result: CoordinatorResult) -> None:
        if result.records and self.fail_writes is not None:
            result = result.refused(self.fail_writes)
        else:
            for record in result.records:
                self.shard.replay(record, result.now_ms)
            self.written += result.records
        for waiter, response in result.answers:
            assert isinstance(waiter, int)
            assert waiter not in self.answers, "answered twice"
            self.answers[waiter] = response
        if result.follow is not None:
            then: CoordinatorResult = CoordinatorResult(result.now_ms)
            result.follow(then)
            self.perform(then)
        assert self.shard.account.held == counted(self.shard)

    def answer(self, waiter: int) -> Any:
        return self.answers.get(waiter)

    def error(self, waiter: int) -> ErrorCode:
        return ErrorCode(self.answers[waiter].error_code)

    def pass_time(self, milliseconds: int) -> None:
        """Move both clocks, meeting every deadline on the way at its time."""
        end_ms = self.steady_ms + milliseconds
        while (next_ms := self.shard.next_ms) is not None and next_ms <= end_ms:
            self._move(max(next_ms - self.steady_ms, 0))
            result = self.shard.tick(self.now_ms)
            if result is not None:
                self.perform(result)
        self._move(end_ms - self.steady_ms)

    def _move(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.steady_ms += milliseconds

    # --- requests

    def join(
        self,
        client: str,
        member_id: str = "",
        *,
        version: int = 9,
        instance: str | None = None,
        protocols: tuple[str, ...] = ("range",),
        metadata: bytes = b"",
        **fields: Any,
    ) -> int:
        self.asked += 1
        request = JoinGroupRequest(
            group_id=TEAM,
            member_id=member_id,
            group_instance_id=instance,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols
            ],
            **{
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "protocol_type": "consumer",
                **fields,
            },
        )
        asked = GroupJoin.of(request, client)
        join = Join(asked, version, Client(client, "/10.0.0.1"), self.asked)
        self.perform(self.shard.join(join, self.now_ms))
        return self.asked

    def sync(self, member_id: str, *, generation: int | None = None, **fields: Any) -> int:
        """Keywords other than the request's fields are assignments by member id."""
        self.asked += 1
        assignments = fields.pop("assign", {})
        request = SyncGroupRequest(
            group_id=TEAM,
            generation_id=self.group.generation if generation is None else generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assignments.items()
            ],
            **fields,
        )
        self.perform(self.shard.sync(GroupSync.of(request), self.asked, self.now_ms))
        return self.asked

    def heartbeat(
        self, member_id: str, *, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        generation = self.group.generation if generation is None else generation
        return self.shard.heartbeat(GroupHeartbeat(TEAM, generation, member_id, instance))

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode]:
        self.asked += 1
        request = LeaveGroupRequest(
            group_id=TEAM,
            members=[
                MemberIdentity(member_id=member, group_instance_id=instance)
                for member, instance in members
            ],
        )
        self.perform(self.shard.leave(request, self.asked, self.now_ms))
        return [ErrorCode(each.error_code) for each in self.answers[self.asked].members]

    def commit(
        self, offset: int = 7, *, member: str = "", generation: int = -1, **fields: Any
    ) -> ErrorCode:
        self.asked += 1
        metadata = fields.pop("metadata", None)
        partition = OffsetCommitRequestPartition(
            partition_index=fields.pop("partition", 0),
            committed_offset=offset,
            committed_metadata=metadata,
        )
        topic = OffsetCommitRequestTopic(name=fields.pop("topic", "t"), partitions=[partition])
        request = OffsetCommitRequest(
            group_id=TEAM,
            member_id=member,
            generation_id_or_member_epoch=generation,
            topics=[topic],
            **fields,
        )
        self.perform(self.shard.commit(request, self.asked, self.now_ms))
        return ErrorCode(self.answers[self.asked].topics[0].partitions[0].error_code)

    # --- what scenarios begin with

    def enter(self, client: str, **fields: Any) -> tuple[str, int]:
        """Join as a new member, in two steps; returns the member id and the second request."""
        member_id = self.answer(self.join(client, **fields)).member_id
        return member_id, self.join(client, member_id, **fields)

    def stable(self, *clients: str, **fields: Any) -> list[str]:
        """A stable group of these clients, the first of which leads; returns their member ids."""
        ids: list[str] = []
        for client in clients:
            member_id, _ = self.enter(client, **fields)
            for earlier in ids:
                self.join(earlier.split("-")[0], earlier, **fields)
            ids.append(member_id)
        for member_id in ids:
            self.sync(member_id, assign={each: each.encode() for each in ids})
        assert self.state == "Stable"
        return ids
