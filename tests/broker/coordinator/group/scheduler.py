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
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.records import KIND
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.embedded import ConsumerProtocolSubscription
from tests.broker.coordinator.group.scenarios import TEAM
from tests.broker.coordinator.group.world import GroupWorld, Request

PARTITIONS: Final = 5
LIMITS: Final = Limits(
    session_min_ms=6000, session_max_ms=60_000, initial_delay_ms=1000, members_max=100,
    metadata_bytes_max=10, retention_ms=10**9,
)  # fmt: skip
METADATA: Final = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
REJOIN: Final = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)
LOST: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


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
        self.ask("join", METADATA)

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
            self.ask("join", METADATA)
        elif code in LOST or request.kind == "leave":
            self.world.met["lost"] += code in LOST
            self.restart()
        elif code in REJOIN:
            self.positions = {}
            self.ask("join", METADATA)
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
            self.ask("commit", {("t", at): offset for at, offset in self.positions.items()})
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


class World(GroupWorld):
    """Everything, and the random numbers that move it."""

    session_ms = 6000
    rebalance_ms = 9000
    assigns = "turns"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.shard = self._shard()
        # What members were told: by generation who has what, and what was committed when.
        self.assigned: dict[int, dict[str, bytes]] = {}
        self.taken: list[tuple[int, int]] = []  # Where a commit is in the log, its generation.
        self.committed: Counter[int] = Counter()
        self.committed_in: Counter[int] = Counter()
        self.clients = [Client(self, f"c{it}", "i0" if it == 0 else None) for it in range(4)]

    def _shard(self) -> Shard:
        return Shard(LIMITS, new_id=self.new_id, steady_ms=lambda: self.steady_ms)

    # --- the coordinator and its log

    def perform(self, result: CoordinatorResult) -> None:
        if result.records and not self.is_well and self.random.random() < 0.05:
            result = result.refused(ErrorCode.NOT_ENOUGH_REPLICAS)
        for record in result.records:
            self.log.append(KIND.encode(record))
            self.shard.replay(record, result.now_ms)
        self._check_order(result)
        self.waiting.append(result)
        if self.is_well or self.random.random() < 0.6:
            self.count()

    def _check_order(self, result: CoordinatorResult) -> None:
        """No commit of a generation is taken after one of a later generation."""
        for request, answer in result.answers:
            assert isinstance(request, Request)
            if request.kind == "commit" and not _code("commit", answer):
                latest = self.taken[-1][1] if self.taken else -1
                assert request.epoch >= latest, "a commit that came too late was taken"
                self.taken.append((len(self.log), request.epoch))

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
        for result in self.shard.loaded(self.now_ms):
            self.perform(result)

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
        self.serve(request)

    def offsets(self) -> list[int]:
        """By the partition's number."""
        group = self.shard.groups.get(TEAM)
        offsets = {} if group is None else group.offsets
        found = [offsets.get(TopicPartition("t", each)) for each in range(PARTITIONS)]
        return [0 if each is None else each.offset for each in found]

    def forget_commits(self, client: Client) -> None:
        def overtaken(each: Request) -> bool:
            mine = each.client is client and each.kind == "commit"
            return mine and each.epoch == client.generation

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

    def note_commit(self, generation: int, offsets: dict[tuple[str, int], int]) -> None:
        """A commit that was acknowledged, by whoever has the partition now."""
        for (_, partition), offset in offsets.items():
            self.met["commits"] += 1
            if generation >= self.committed_in[partition]:
                self.committed_in[partition] = generation
                self.committed[partition] = max(offset, self.committed[partition])

    def check_fetched(self, partition: int, offset: int) -> None:
        assert offset >= self.committed[partition], f"the offset of {partition} went back"

    # --- the scenario

    def happenings(self) -> Sequence[tuple[Callable[[], object], int]]:
        """What may happen, and how often."""
        return (
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
