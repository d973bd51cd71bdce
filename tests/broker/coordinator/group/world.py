"""What the worlds have in common in which a seed decides what happens to groups: see `scheduler`.

A clock, requests that arrive when chance has them arrive, and a log that counts what it holds
later. How members behave, what may go wrong and what must hold is each world's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_broker.coordinator.group.shard import Shard
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
from tests.broker.coordinator.group.scenarios import TEAM

STEPS = 400


@dataclass(eq=False)
class Request:
    """What a member asks; `number` tells its latest request from those it gave up.

    `epoch` is the generation in the classic protocol. `details` are the metadata of a join, the
    shares in a sync, the offsets by (topic, number) in a commit. `client` has a name, may have an
    instance id, and hears the answer.
    """

    client: Any
    number: int
    kind: str
    member_id: str
    epoch: int
    details: Any = None


class GroupWorld(ABC):
    """One group, its coordinator, and the random numbers that move them."""

    shard: Shard
    session_ms: int
    rebalance_ms: int
    #: the one protocol that members of the classic protocol support
    assigns: str

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.steady_ms = 1_000_000
        self.skew_ms = 0
        self.met: Counter[str] = Counter()
        self.ids = 0
        self.log: list[Any] = []
        self.counted = 0
        self.waiting: list[CoordinatorResult] = []
        self.in_flight: list[Request] = []
        self.late: list[Request] = []
        self.is_well = False

    def new_id(self) -> str:
        self.ids += 1
        return str(self.ids)

    # --- time

    @property
    def now_ms(self) -> int:
        """The wall clock, which may be set."""
        return self.steady_ms + self.skew_ms

    def set_clock(self) -> None:
        """Somebody sets the wall clock, forth or back."""
        self.skew_ms += self.random.choice((-3_600_000, -5000, 5000, 3_600_000))

    def pass_time(self, most_ms: int = 3000) -> None:
        """Move the clock, meeting every deadline on the way at its time, or late."""
        end_ms = self.steady_ms + self.random.randint(1, most_ms)
        while (next_ms := self.shard.next_ms) is not None and next_ms <= end_ms:
            self.steady_ms = max(self.steady_ms, next_ms)
            result = self.shard.tick(self.now_ms)
            if result is not None:
                self.met["deadlines"] += 1
                self.perform(result)
        self.steady_ms = end_ms

    # --- the coordinator and its log

    @abstractmethod
    def perform(self, result: CoordinatorResult) -> None:
        """Append what a turn writes, and have its answers wait."""

    def count(self) -> None:
        """Everything in the log counts: who waited for that is answered."""
        self.counted = len(self.log)
        waiting, self.waiting = self.waiting, []
        for result in waiting:
            for request, answer in result.answers:
                assert isinstance(request, Request)
                self.tell(request, answer)

    def tell(self, request: Request, answer: Any) -> None:
        """Send an answer, which may get lost."""
        if self.is_well or self.random.random() < 0.9:
            request.client.hear(request, answer)

    # --- requests

    def deliver_late(self) -> None:
        """A request arrives once more, long after it was sent."""
        if self.late:
            self.met["late"] += 1
            self.serve(self.late.pop(0))

    def serve(self, request: Request) -> None:
        """Have the coordinator do what is asked."""
        self.perform(self.decide(request))

    def decide(self, request: Request) -> CoordinatorResult:
        """What the coordinator makes of a request."""
        now_ms, shard = self.now_ms, self.shard
        if request.kind == "join":
            return shard.join(self._join(request), now_ms)
        if request.kind == "sync":
            return shard.sync(GroupSync.of(self._sync(request)), request, now_ms)
        if request.kind == "commit":
            return shard.commit(_commit(request), request, now_ms)
        if request.kind == "leave":
            return shard.leave(_leave(request), request, now_ms)
        result: CoordinatorResult = CoordinatorResult(now_ms)
        beats = request.kind == "heartbeat"
        result.answer(request, shard.heartbeat(_heartbeat(request)) if beats else self.offsets())
        return result

    @abstractmethod
    def offsets(self) -> Any:
        """The answer to a fetch of offsets."""

    def _join(self, request: Request) -> Join:
        asked = JoinGroupRequest(
            group_id=TEAM,
            member_id=request.member_id,
            group_instance_id=request.client.instance,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=self.assigns, metadata=request.details)],
        )
        client = Client(request.client.name, "/10.0.0.1")
        return Join(GroupJoin.of(asked, request.client.name), 9, client, request)

    def _sync(self, request: Request) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=TEAM,
            generation_id=request.epoch,
            member_id=request.member_id,
            group_instance_id=request.client.instance,
            protocol_type="consumer",
            protocol_name=self.assigns,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=share)
                for member, share in request.details.items()
            ],
        )

    # --- the scenario

    def rebalance(self) -> Self:
        """To its end; what was shared, lost, set back or left undone is an AssertionError."""
        try:
            self.run(STEPS)
            self.heal()
            self.check()
        except AssertionError as error:
            error.add_note(f"seed {self.seed}")
            raise
        return self

    def run(self, steps: int) -> None:
        """Let things happen."""
        actions, weights = zip(*self.happenings(), strict=True)
        for action in self.random.choices(actions, weights, k=steps):
            self.happen(action)

    def happen(self, action: Callable[[], object]) -> None:
        """Let one thing happen."""
        action()

    @abstractmethod
    def happenings(self) -> Sequence[tuple[Callable[[], object], int]]:
        """What may happen, and how often."""

    @abstractmethod
    def heal(self) -> None:
        """Nothing fails any more: members ask until all is well."""

    @abstractmethod
    def check(self) -> None:
        """What must hold in the end."""


def _commit(request: Request) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (name, number), offset in request.details.items():
        topics.setdefault(name, []).append(
            OffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=""
            )
        )
    return OffsetCommitRequest(
        group_id=TEAM,
        member_id=request.member_id,
        generation_id_or_member_epoch=request.epoch,
        group_instance_id=request.client.instance,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=some) for name, some in topics.items()
        ],
    )


def _leave(request: Request) -> LeaveGroupRequest:
    leaver = MemberIdentity(member_id=request.member_id, group_instance_id=request.client.instance)
    return LeaveGroupRequest(group_id=TEAM, members=[leaver])


def _heartbeat(request: Request) -> GroupHeartbeat:
    return GroupHeartbeat(TEAM, request.epoch, request.member_id, request.client.instance)
