"""A world of members, a coordinator and its log in which a seed decides what happens next.

The coordinator is the product's core; everything around it is a model: a log that counts what it
holds late, or loses what does not count yet in a crash; members of one group, one of them static,
that join, share partitions, read, commit, leave, fall asleep and are replaced. Requests arrive
late, in any order, twice; answers get lost.

Two things keep to an order, as they do on a connection: a commit that is overtaken by a newer one
of the same member in the same generation does not arrive any more, and what is asked about the
group is answered from what counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.members import Client as Told
from barnabas_broker.coordinator.group.records import KIND
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.group.turns import Turn
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.embedded import ConsumerProtocolSubscription
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
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

TEAM: Final = "team"
PARTITIONS: Final = 5
SESSION_MS: Final = 6000
REBALANCE_MS: Final = 9000
LIMITS: Final = Limits(
    session_min_ms=6000, session_max_ms=60_000, initial_delay_ms=1000, members_max=100,
    metadata_bytes_max=10, retention_ms=10**9,
)  # fmt: skip
METADATA: Final = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
REJOIN: Final = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)
LOST: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


@dataclass(eq=False)
class Request:
    """What a member asks; `number` tells its latest request from those it gave up."""

    client: Client
    number: int
    kind: str
    member_id: str
    generation: int
    details: Any = None


class Client:
    """A consumer: one request at a time, asked again when nothing is heard."""

    def __init__(self, world: World, name: str, instance: str | None) -> None:
        self.world, self.name, self.instance = world, name, instance
        self.number = 0
        self.restart()

    def restart(self) -> None:
        """A new process: it knows nothing."""
        self.member_id, self.generation = "", -1
        self.positions: dict[int, int] = {}
        self.ask("join")

    def ask(self, kind: str, details: Any = None) -> None:
        self.number += 1
        self.pending = Request(self, self.number, kind, self.member_id, self.generation, details)
        if kind == "commit":
            self.world.forget_commits(self)
        self.world.in_flight.append(self.pending)

    def ask_again(self) -> None:
        """Nothing was heard for long."""
        self.world.in_flight.append(self.pending)

    def leave(self) -> None:
        self.ask("leave")

    def hear(self, request: Request, answer: Any) -> None:
        if request.number != self.number:
            return
        code = _code(request.kind, answer)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.ask("join")
        elif code in LOST or request.kind == "leave":
            self.world.met["lost"] += code in LOST
            self.restart()
        elif code in REJOIN:
            self.positions = {}
            self.ask("join")
        elif code is not ErrorCode.NONE:
            self.ask_again()
        else:
            self._go_on(request, answer)

    def _go_on(self, request: Request, answer: Any) -> None:
        world = self.world
        if request.kind == "join":
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.ask("sync", self._shares([each.member_id for each in answer.members]))
        elif request.kind == "sync":
            # Who takes a static member's place has its share, too.
            who = self.instance or self.member_id
            world.note_assignment(self.generation, who, answer.assignment)
            self.positions = dict.fromkeys(answer.assignment, 0)
            self.ask("fetch")
        elif request.kind == "fetch":
            for partition in self.positions:
                world.check_fetched(partition, answer[partition])
                self.positions[partition] = answer[partition]
            self.ask("heartbeat")
        elif request.kind == "commit":
            world.note_commit(self.generation, request.details)
            self.ask("heartbeat")
        elif self.positions and world.random.random() < 0.6:
            for partition in self.positions:
                self.positions[partition] += world.random.randint(0, 3)
            self.ask("commit", dict(self.positions))
        else:
            self.ask("heartbeat")

    def _shares(self, members: list[str]) -> dict[str, bytes]:
        """Who gets what, where this one leads: partition after partition in turn."""
        shares: dict[str, list[int]] = {member: [] for member in members}
        for partition in range(PARTITIONS if members else 0):
            shares[members[partition % len(members)]].append(partition)
        return {member: bytes(share) for member, share in shares.items()}


def _code(kind: str, answer: Any) -> ErrorCode:
    if kind == "fetch":
        return ErrorCode.NONE
    if kind == "heartbeat":
        return ErrorCode(answer)
    if kind == "commit":
        return ErrorCode(answer.topics[0].partitions[0].error_code)
    return ErrorCode(answer.error_code)


class World:
    """Everything, and the random numbers that move it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.steady_ms = 1_000_000
        self.skew_ms = 0
        self.met: Counter[str] = Counter()
        self.ids = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.counted = 0
        self.shard = self._shard()
        self.waiting: list[Turn] = []
        self.in_flight: list[Request] = []
        self.late: list[Request] = []
        self.is_well = False
        # What members were told: by generation who has what, and what was committed when.
        self.assigned: dict[int, dict[str, bytes]] = {}
        self.taken: list[tuple[int, int]] = []  # Where a commit is in the log, its generation.
        self.committed: Counter[int] = Counter()
        self.committed_in: Counter[int] = Counter()
        self.clients = [Client(self, f"c{it}", "i0" if it == 0 else None) for it in range(4)]

    @property
    def now_ms(self) -> int:
        """The wall clock, which may be set."""
        return self.steady_ms + self.skew_ms

    def _shard(self) -> Shard:
        return Shard(LIMITS, new_id=self._new_id, steady_ms=lambda: self.steady_ms)

    def _new_id(self) -> str:
        self.ids += 1
        return str(self.ids)

    # --- the coordinator and its log

    def perform(self, turn: Turn) -> None:
        if turn.records and not self.is_well and self.random.random() < 0.05:
            turn = turn.refused(ErrorCode.NOT_ENOUGH_REPLICAS)
        for record in turn.records:
            self.log.append(KIND.encode(record))
            self.shard.replay(record, turn.now_ms)
        self._check_order(turn)
        self.waiting.append(turn)
        if self.is_well or self.random.random() < 0.6:
            self.count()

    def _check_order(self, turn: Turn) -> None:
        """No commit of a generation is taken after one of a later generation."""
        for request, answer in turn.answers:
            assert isinstance(request, Request)
            if request.kind == "commit" and not _code("commit", answer):
                latest = self.taken[-1][1] if self.taken else -1
                assert request.generation >= latest, "a commit that came too late was taken"
                self.taken.append((len(self.log), request.generation))

    def count(self) -> None:
        """Everything in the log counts: who waited for that is answered."""
        self.counted = len(self.log)
        waiting, self.waiting = self.waiting, []
        for turn in waiting:
            for request, answer in turn.answers:
                assert isinstance(request, Request)
                if self.is_well or self.random.random() < 0.9:
                    request.client.hear(request, answer)

    def crash(self) -> None:
        """Memory is gone, and perhaps what did not count yet."""
        self.met["crashes"] += 1
        del self.log[self.random.randint(self.counted, len(self.log)) :]
        self.counted = len(self.log)
        self.taken = [each for each in self.taken if each[0] <= self.counted]
        self.waiting = []
        self.shard = self._shard()
        for key, value in self.log:
            record = KIND.decode(key, value)
            assert record is not None
            self.shard.replay(record, self.now_ms)
        for turn in self.shard.loaded(self.now_ms):
            self.perform(turn)

    def pass_time(self, most_ms: int = 3000) -> None:
        """Move the clock, meeting every deadline on the way at its time, or late."""
        end_ms = self.steady_ms + self.random.randint(1, most_ms)
        while (next_ms := self.shard.next_ms) is not None and next_ms <= end_ms:
            self.steady_ms = max(self.steady_ms, next_ms)
            turn = self.shard.tick(self.now_ms)
            if turn is not None:
                self.met["deadlines"] += 1
                self.perform(turn)
        self.steady_ms = end_ms

    def set_clock(self) -> None:
        """Somebody sets the wall clock, forth or back."""
        self.skew_ms += self.random.choice((-3_600_000, -5000, 5000, 3_600_000))

    # --- requests

    def deliver(self) -> None:
        """Some request arrives, and may arrive once more."""
        if not self.in_flight:
            return
        index = self.random.randrange(len(self.in_flight))
        request = self.in_flight[index]
        if self.is_well or self.random.random() < 0.85:
            del self.in_flight[index]
        if self.random.random() < 0.05:
            self.late.append(request)
        self._serve(request)

    def deliver_late(self) -> None:
        """A request arrives once more, long after it was sent."""
        if self.late:
            self.met["late"] += 1
            self._serve(self.late.pop(0))

    def _serve(self, request: Request) -> None:
        now_ms, shard = self.now_ms, self.shard
        if request.kind == "join":
            self.perform(shard.join(self._join(request), now_ms))
        elif request.kind == "sync":
            self.perform(shard.sync(_sync(request), request, now_ms))
        elif request.kind == "commit":
            self.perform(shard.commit(_commit(request), request, now_ms))
        elif request.kind == "leave":
            leaver = MemberIdentity(
                member_id=request.member_id, group_instance_id=request.client.instance
            )
            asked = LeaveGroupRequest(group_id=TEAM, members=[leaver])
            self.perform(shard.leave(asked, request, now_ms))
        else:
            turn: Turn = Turn(now_ms)
            turn.answer(request, self._looked(request))
            self.perform(turn)

    def _looked(self, request: Request) -> Any:
        """The answer to what has nothing written."""
        if request.kind == "heartbeat":
            asked = HeartbeatRequest(
                group_id=TEAM, member_id=request.member_id, generation_id=request.generation,
                group_instance_id=request.client.instance,
            )  # fmt: skip
            return self.shard.heartbeat(asked)
        group = self.shard.groups.get(TEAM)
        offsets = {} if group is None else group.offsets
        found = [offsets.get(TopicPartition("t", each)) for each in range(PARTITIONS)]
        return [0 if each is None else each.offset for each in found]

    def _join(self, request: Request) -> Join:
        asked = JoinGroupRequest(
            group_id=TEAM,
            member_id=request.member_id,
            group_instance_id=request.client.instance,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="turns", metadata=METADATA)],
        )
        return Join.of(asked, 9, client=Told(request.client.name, "/10.0.0.1"), waiter=request)

    def forget_commits(self, client: Client) -> None:
        def overtaken(each: Request) -> bool:
            mine = each.client is client and each.kind == "commit"
            return mine and each.generation == client.generation

        self.in_flight = [each for each in self.in_flight if not overtaken(each)]
        self.late = [each for each in self.late if not overtaken(each)]

    # --- what members were told

    def note_assignment(self, generation: int, who: str, share: bytes) -> None:
        """Nobody has what another one has in the same generation, nor two shares in one."""
        shares = self.assigned.setdefault(generation, {})
        assert shares.setdefault(who, share) == share, "two shares in one generation"
        taken = Counter(partition for each in shares.values() for partition in each)
        assert all(count == 1 for count in taken.values()), f"shared: {shares}"
        self.met["shares"] += 1

    def note_commit(self, generation: int, positions: dict[int, int]) -> None:
        """A commit that was acknowledged, by whoever has the partition now."""
        for partition, offset in positions.items():
            self.met["commits"] += 1
            if generation >= self.committed_in[partition]:
                self.committed_in[partition] = generation
                self.committed[partition] = max(offset, self.committed[partition])

    def check_fetched(self, partition: int, offset: int) -> None:
        assert offset >= self.committed[partition], f"the offset of {partition} went back"

    # --- the story

    def run(self, steps: int) -> None:
        """Let things happen."""
        happenings = (
            (self.deliver, 70),
            (self.deliver_late, 3),
            (self.count, 10),
            (lambda: self.random.choice(self.clients).ask_again(), 12),
            (self.pass_time, 12),
            (self.crash, 2),
            (self.set_clock, 1),
            (lambda: self.random.choice(self.clients).leave(), 1),
            (lambda: self.random.choice(self.clients).restart(), 1),
        )
        actions, weights = zip(*happenings, strict=True)
        for action in self.random.choices(actions, weights, k=steps):
            action()

    def heal(self, steps: int = 600) -> None:
        """Nothing fails any more: members ask until they have an answer."""
        self.is_well = True
        self.count()
        for step in range(steps):
            if self.in_flight:
                self.deliver()
            if not step % 4:
                self.pass_time(500)
            if not step % 20:
                for client in self.clients:
                    if client.pending not in self.in_flight:
                        client.ask_again()

    def check(self) -> None:
        """All members are in one generation and have all partitions; no offset went back."""
        group = self.shard.groups[TEAM]
        assert group.state.value == "Stable", group.state
        assert {client.generation for client in self.clients} == {group.generation}
        assert {client.member_id for client in self.clients} == set(group.members)
        shares = [partition for client in self.clients for partition in client.positions]
        assert sorted(shares) == list(range(PARTITIONS))
        for partition in range(PARTITIONS):
            known = group.offsets.get(TopicPartition("t", partition))
            self.check_fetched(partition, 0 if known is None else known.offset)


def _sync(request: Request) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=TEAM,
        generation_id=request.generation,
        member_id=request.member_id,
        group_instance_id=request.client.instance,
        protocol_type="consumer",
        protocol_name="turns",
        assignments=[
            SyncGroupRequestAssignment(member_id=member, assignment=share)
            for member, share in request.details.items()
        ],
    )


def _commit(request: Request) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        for partition, offset in request.details.items()
    ]
    return OffsetCommitRequest(
        group_id=TEAM,
        member_id=request.member_id,
        generation_id_or_member_epoch=request.generation,
        group_instance_id=request.client.instance,
        topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)],
    )
