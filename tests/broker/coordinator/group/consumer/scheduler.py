"""A world of consumers, a coordinator and its log in which a seed decides what happens next.

The coordinator is the product's core, with groups of the consumer protocol and those that migrate
to it and back; everything around it is a model: a log that counts what it holds late, that loses
what does not count yet in a crash, and is compacted; topics that grow, go and come again; consumers
(`processes`) that join, read, commit, leave, are paused, and are replaced by such as use the other
protocol. Requests arrive late, in any order, twice; answers get lost.

In every other world what a consumer asks arrives once and in order, as on one connection: there no
two members of the consumer protocol read a partition, whoever has been told what. Where requests
overtake each other, or come twice, only those count as readers whom the coordinator would still
take for what they say they are: an old heartbeat can give up in a member's name what it has been
given since, in Apache Kafka too. Commits of a member in an epoch keep to their order everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from barnabas_broker.coordinator.group.consumer.assignors import ASSIGNORS
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.heartbeat import Beat
from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.limits import ConsumerLimits
from barnabas_broker.coordinator.group.members import Client as Reported
from barnabas_broker.coordinator.group.records import KIND, Record
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from tests.broker.coordinator.group.consumer.processes import (
    REBALANCE_MS,
    Classic,
    Modern,
    Process,
    code_of,
)
from tests.broker.coordinator.group.consumer.topics import Topics
from tests.broker.coordinator.group.scenarios import LIMITS, TEAM
from tests.broker.coordinator.group.world import GroupWorld, Request

SESSION_MS: Final = 6000
PLACES: Final = 4
PARTITIONS_MAX: Final = 7
UNHEARD: Final = 0
"""The number of a copy of a request: nobody waits for its answer."""
KEPT: Final = "t"
"""The topic that is never deleted, so that its offsets are watched."""
WANTED: Final = ((KEPT,), (KEPT, "u"), (KEPT, "u", "v"))
EXPRESSIONS: Final = ("t|u", "t.*|v", "[t-v]")


class World(Topics, GroupWorld):
    """Everything, and the random numbers that move it."""

    session_ms = SESSION_MS
    rebalance_ms = REBALANCE_MS

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.in_order = self.random.random() < 0.5
        self.is_mixed = self.random.random() < 0.6
        self.is_eager = self.random.random() < 0.5
        self.assigns = "eager" if self.is_eager else "cooperative"
        self.assignor = self.random.choice((None, "range"))
        self.batches = 0
        self.shard = self._shard()
        self.put_topic(KEPT, 3)
        self.put_topic("u", 2)
        self.epochs = 0, 0
        self.committed: Counter[tuple[str, int]] = Counter()
        self.processes: list[Process] = []
        for place in range(PLACES):
            self.processes.append(self._process(place, classic=self.is_mixed))
            self.processes[place].begin()

    @property
    def group(self) -> Group | None:
        return self.shard.groups.get(TEAM)

    @property
    def consumers(self) -> ConsumerGroup | None:
        return None if self.group is None else self.group.consumers

    def _shard(self) -> Shard:
        limits = replace(
            LIMITS,
            retention_ms=10**9,
            initial_delay_ms=1000,
            consumers=ConsumerLimits(session_ms=SESSION_MS),
        )
        shard = Shard(limits, new_id=self.new_id, steady_ms=lambda: self.steady_ms)
        shard.on_image(self.image)
        return shard

    # --- processes

    def _process(self, place: int, *, classic: bool) -> Process:
        topics = self.random.choice(WANTED)
        if classic:
            return Classic(self, place, topics)
        if self.random.random() < 0.3:
            return Modern(self, place, (), self.random.choice(EXPRESSIONS))
        return Modern(self, place, topics, None)

    def replace(self, process: Process) -> None:
        """It has ended, in order or not; another one is started, perhaps of the other protocol."""
        process.is_gone = True
        classic = isinstance(process, Classic)
        if self.is_mixed and not self.is_well and self.random.random() < 0.6:
            classic = not classic
        self.processes[process.place] = self._process(process.place, classic=classic)
        self.processes[process.place].begin()

    def _awake(self) -> list[Process]:
        return [each for each in self.processes if not each.is_asleep and not each.leaves]

    def hurry(self) -> None:
        """Somebody gave up waiting for an answer."""
        awake = [each for each in self.processes if not each.is_asleep]
        if awake:
            self.random.choice(awake).ask_again()

    def stop_one(self) -> None:
        if awake := self._awake():
            self.random.choice(awake).leave()

    def kill_one(self) -> None:
        self.replace(self.random.choice(self.processes))

    def pause_one(self) -> None:
        self.random.choice(self.processes).is_asleep = True

    def wake_one(self) -> None:
        if sleeping := [each for each in self.processes if each.is_asleep]:
            self.random.choice(sleeping).wake()

    def resubscribe_one(self) -> None:
        some = [each for each in self._awake() if isinstance(each, Modern)]
        if some:
            wants = self._process(0, classic=False)
            assert isinstance(wants, Modern)
            self.random.choice(some).subscribe(wants.topics, wants.regex)

    # --- topics

    def change_topics(self) -> None:
        """A topic gets partitions, or is made, or deleted."""
        self.met["topics"] += 1
        name = self.random.choice((KEPT, "u", "v"))
        known = self.image.topic(name)
        if known is None:
            self.put_topic(name, 2)
        elif name != KEPT and self.random.random() < 0.5:
            self.drop_topic(name)
            for result in self.shard.forget_topics({name}, self.now_ms):
                self.perform(result)
        else:
            self.put_topic(name, min(len(known.partitions) + 1, PARTITIONS_MAX))

    # --- the coordinator and its log

    def perform(self, result: CoordinatorResult) -> None:
        if result.records and not self.is_well and self.random.random() < 0.05:
            result = result.refused(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.batches += 1
        for record in result.records:
            self.append(record)
            self.shard.replay(record, result.now_ms)
        self._check_epochs()
        self.waiting.append(result)
        if self.is_well or self.random.random() < 0.6:
            self.count()
        if result.follow is not None:
            then: CoordinatorResult = CoordinatorResult(result.now_ms)
            result.follow(then)
            self.perform(then)

    def append(self, record: Record) -> None:
        """Write the number of a batch, a key and a value."""
        self.log.append((self.batches, *KIND.encode(record)))

    def tell(self, request: Request, answer: Any) -> None:
        """Send an answer, which may get lost."""
        if request.kind == "fetch":
            self._check_offsets(answer)
        super().tell(request, answer)

    def crash(self) -> None:
        """Memory is gone, and perhaps what did not count yet."""
        self.met["crashes"] += 1
        self._check_reload()
        del self.log[self.random.choice(self._bounds(self.counted, len(self.log))) :]
        self.counted = len(self.log)
        self.waiting = []
        self.shard = self._reloaded()
        self.epochs = 0, 0
        self._check_epochs()
        for result in self.shard.loaded(self.now_ms):
            self.perform(result)

    def _bounds(self, start: int, end: int) -> list[int]:
        """Where batches begin or end: each is there as a whole, or not at all."""
        inner = range(start + 1, end)
        bounds = [at for at in inner if self.log[at - 1][0] != self.log[at][0]]
        return [start, *bounds, end]

    def compact(self) -> None:
        """Of what counts, up to somewhere, only the last record of each key stays."""
        end = self.random.choice(self._bounds(0, self.counted))
        self.met["compacted"] += 1
        last = {key: at for at, (_, key, _) in enumerate(self.log[:end])}
        drops_ends = self.random.random() < 0.5
        kept = [
            each
            for at, each in enumerate(self.log[:end])
            if last[each[1]] == at and not (drops_ends and each[2] is None)
        ]
        self.counted -= end - len(kept)
        self.log[:end] = kept

    def _reloaded(self) -> Shard:
        shard = self._shard()
        for _, key, value in self.log:
            record = KIND.decode(key, value)
            assert record is not None
            shard.replay(record, self.now_ms)
        return shard

    # --- requests

    def send(self, request: Request) -> None:
        self.in_flight.append(request)

    def forget(self, newer: Request) -> None:
        """What this request overtakes arrives no more, where requests keep to their order."""

        def overtaken(each: Request) -> bool:
            mine = each.client is newer.client and each.number < newer.number
            both_commit = each.kind == newer.kind == "commit" and each.epoch == newer.epoch
            return mine and (self.in_order or both_commit)

        self.in_flight = [each for each in self.in_flight if not overtaken(each)]
        self.late = [each for each in self.late if not overtaken(each)]

    def deliver(self) -> None:
        """Some request arrives, and may arrive once more."""
        if not self.in_flight:
            return
        index = self.random.randrange(len(self.in_flight))
        request = self.in_flight[index]
        del self.in_flight[index]
        if not (self.is_well or self.in_order) and self.random.random() < 0.2:
            again = replace(request, number=UNHEARD)
            where = self.random.choice((self.in_flight, self.in_flight, self.late))
            where.append(again)
        self.serve(request)

    def serve(self, request: Request) -> None:
        """Have the coordinator do what is asked, which may change the kind of the group."""
        before = None if self.group is None else self.group.kind
        super().serve(request)
        if self.group is not None and not self.group.is_empty and before != self.group.kind:
            self.met[f"became {self.group.kind}"] += 1

    def decide(self, request: Request) -> CoordinatorResult:
        """What the coordinator makes of a request."""
        if request.kind == "beat":
            return self.shard.consumer_heartbeat(_beat(request), self.now_ms)
        result = super().decide(request)
        if request.kind == "commit":
            self._check_commit(request, result)
        return result

    def offsets(self) -> dict[tuple[str, int], int]:
        """By topic and partition."""
        offsets = {} if self.group is None else self.group.offsets
        return {(tp.topic, tp.partition): each.offset for tp, each in offsets.items()}

    # --- what must hold all the time

    def _epochs(self) -> tuple[int, int]:
        """The epochs of the group and of its target; a group that nobody is in may begin anew."""
        consumers = self.consumers
        if consumers is None:
            is_empty = self.group is None or self.group.is_empty
            return (0, 0) if is_empty else self.epochs
        return (consumers.epoch, consumers.target_epoch) if consumers.members else (0, 0)

    def _check_epochs(self) -> None:
        before, self.epochs = self.epochs, self._epochs()
        if self.epochs != (0, 0):
            assert self.epochs[0] >= before[0], f"the group's epoch went back: {before}"
            assert self.epochs[1] >= before[1], f"the target's epoch went back: {before}"
            assert self.epochs[1] <= self.epochs[0], f"a target ahead of its group: {self.epochs}"

    def _check_reload(self) -> None:
        """Whoever reads the log knows what this coordinator knows."""
        read = _known(self._reloaded())
        for what, known in _known(self.shard).items():
            assert read.get(what) == known, f"{what} differs when read back: {read} for {known}"

    def _check_commit(self, request: Request, result: CoordinatorResult) -> None:
        (_, answer), group = result.answers[0], self.group
        if code_of("commit", answer) is not ErrorCode.NONE or group is None:
            return
        self.met["commits"] += 1
        epoch = group.generation if request.member_id in group.members else None
        if group.consumers is not None:
            member = group.consumers.members.get(request.member_id)
            epoch = None if member is None else member.epoch
        assert request.epoch == epoch, "a commit with a stale epoch was taken"

    def check_owners(self) -> None:
        """No partition is read by two, nor held by two."""
        if self.consumers is not None:
            members = self.consumers.members.values()
            held = [(partition, each.id) for each in members for partition in each.held]
            assert len(dict(held)) == len(held), f"held by two: {held}"
            assert dict(held) == self.consumers.owners, f"{self.consumers.owners} hold {held}"
        readers: Counter[Any] = Counter()
        for process in self.processes:
            if process.owned and self._is_owner(process):
                readers.update(process.owned)
        assert all(count == 1 for count in readers.values()), f"read by two: {readers}"

    def _is_owner(self, process: Process) -> bool:
        """Whether the group has it as the member that it takes itself for."""
        consumers = self.consumers
        if isinstance(process, Classic):
            if process.synced != process.epoch or self.group is None:
                return False
            if consumers is None:
                is_member = process.member_id in self.group.members
                return is_member and process.epoch == self.group.generation
            known = consumers.members.get(process.member_id)
            return known is not None and process.epoch == known.epoch
        member = None if consumers is None else consumers.members.get(process.member_id)
        if member is None:
            return False
        lags = process.epoch == member.previous_epoch and process.owned <= member.assigned
        return self.in_order or process.epoch == member.epoch or lags

    def note_commit(self, offsets: dict[tuple[str, int], int]) -> None:
        """A commit that was acknowledged."""
        for partition, offset in offsets.items():
            self.committed[partition] = max(offset, self.committed[partition])

    def _check_offsets(self, offsets: Any) -> None:
        for partition, offset in self.committed.items():
            if partition[0] == KEPT:
                assert offsets.get(partition, 0) >= offset, f"the offset of {partition} went back"

    # --- the scenario

    def happen(self, action: Callable[[], object]) -> None:
        """Let one thing happen: each partition has one reader then, too."""
        super().happen(action)
        self.check_owners()

    def happenings(self) -> Sequence[tuple[Callable[[], object], int]]:
        """What may happen, and how often."""
        return (
            (self.deliver, 70),
            (self.deliver_late, 3),
            (self.count, 10),
            (self.hurry, 12),
            (self.pass_time, 10),
            (self.crash, 2),
            (self.compact, 1),
            (self.set_clock, 1),
            (self.change_topics, 1),
            (self.resubscribe_one, 1),
            (self.stop_one, 1),
            (self.kill_one, 1),
            (self.pause_one, 1),
            (self.wake_one, 3),
        )

    def heal(self, rounds: int = 60) -> None:
        """Nothing fails any more: processes ask until all is well, and remains so.

        They connect anew and, as clients do then, say everything. Timers of before run out first.
        """
        self.is_well = True
        self.count()
        for process in list(self.processes):
            process.wake()
        for process in self.processes:
            if isinstance(process, Modern):
                process.says_all = True
            elif isinstance(process, Classic):
                # Where a static member's coming made the group classic nobody knows that it leads,
                # in Apache Kafka neither: topics are looked after from the next rebalance on.
                process.leads_as_of = -1
        self.late, self.in_flight = [], []
        calm_ms = self.steady_ms + SESSION_MS
        for _ in range(rounds):
            self._go_on()
            if self.steady_ms > calm_ms and self.trouble() is None:
                break
        settled = self.epochs
        self._go_on()
        assert self.trouble() is None, self.trouble()
        assert self.epochs == settled, "the group is not at rest"

    def _go_on(self, steps: int = 40) -> None:
        for process in list(self.processes):
            if process.pending not in self.in_flight:
                process.ask_again()
        for step in range(steps):
            self.deliver()
            self.check_owners()
            if not step % 4:
                self.pass_time(500)

    def wanted(self) -> Partitions:
        """All partitions that somebody wants."""
        names = {name for each in self.processes for name in self._wanted_by(each)}
        topics = [each for name, each in self.image.topics.items() if name in names]
        return frozenset((each.id, at) for each in topics for at in range(len(each.partitions)))

    def _wanted_by(self, process: Process) -> frozenset[str]:
        regex = process.regex if isinstance(process, Modern) else None
        if regex is None:
            return frozenset(process.topics)
        matcher = re.compile(regex)
        return frozenset(each for each in self.image.topics if matcher.fullmatch(each))

    def trouble(self) -> str | None:
        """What keeps the group from being as it shall be in the end."""
        group, consumers = self.group, self.consumers
        owned = Counter(partition for each in self.processes for partition in each.owned)
        ids = {each.member_id for each in self.processes}
        if group is None:
            return "there is no group"
        state = group.state.value if consumers is None else consumers.state_name
        if state != "Stable":
            return f"the group is {state}"
        if owned != Counter(self.wanted()):
            return f"read: {owned}, wanted: {self.wanted()}"
        if ids != set(group.members if consumers is None else consumers.members):
            return "there are other members"
        epoch = group.generation if consumers is None else consumers.epoch
        if {each.epoch for each in self.processes} != {epoch}:
            return "members are behind"
        return None

    def check(self) -> None:
        """What nobody has touched since is shared as the assignor says; no offset went back."""
        assert self.group is not None
        self._check_offsets(self.offsets())
        if self.consumers is None:
            return
        ids = {process.member_id: process for process in self.processes}
        for member_id, process in ids.items():
            assert process.owned == self.consumers.target[member_id], "not what it shall read"
        wanted = {
            member_id: frozenset(
                self.image.topics[name].id
                for name in self._wanted_by(process)
                if name in self.image.topics
            )
            for member_id, process in ids.items()
        }
        topics = {each for some in wanted.values() for each in some}
        counts = {
            each.id: len(each.partitions)
            for each in self.image.topics.values()
            if each.id in topics
        }
        name = self._elected()
        again = ASSIGNORS[name](wanted, counts, self.consumers.target)
        shares = _shares(name, self.consumers.target)
        assert shares == _shares(name, again), "the assignor would share otherwise"

    def _elected(self) -> str:
        assert self.consumers is not None
        names = {each.assignor for each in self.consumers.members.values()}
        return "range" if "range" in names else "uniform"


def _shares(assignor: str, assigned: Mapping[str, Partitions]) -> dict[Any, list[int]]:
    """How many partitions members have, of each topic or of all, as the assignor counts.

    Not who has which: a static member that takes another's place has what that had.
    """
    counts: dict[Any, Counter[str]] = {}
    for member_id, some in assigned.items():
        for topic_id, _ in some:
            what = topic_id if assignor == "range" else None
            counts.setdefault(what, Counter())[member_id] += 1
    return {what: sorted(each.values()) for what, each in counts.items()}


def _known(shard: Shard) -> dict[str, Any]:
    """What a shard knows that is in its log; a classic group that rebalances is not yet."""
    group = shard.groups.get(TEAM)
    if group is None:
        return {"offsets": {}}
    known: dict[str, Any] = {"offsets": {tp: each.offset for tp, each in group.offsets.items()}}
    consumers = group.consumers
    if consumers is not None and consumers.members:
        names = ("epoch", "target_epoch", "members", "static", "target", "topics", "expressions")
        known["consumers"] = {name: getattr(consumers, name) for name in (*names, "owners")}
    elif group.state is GroupState.STABLE:
        assigned = {each.id: bytes(each.assignment) for each in group.members.values()}
        known["members"] = group.generation, assigned
    return known


def _beat(request: Request) -> Beat:
    asked = ConsumerGroupHeartbeatRequest(
        group_id=TEAM,
        member_id=request.member_id,
        member_epoch=request.epoch,
        instance_id=request.client.instance,
        **request.details,
    )
    return Beat(
        request=asked,
        version=1,
        client=Reported("client", "/10.0.0.1"),
        waiter=request,
        visible=lambda _name: True,
    )
