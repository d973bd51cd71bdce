"""Which replicas to move so that brokers carry alike, moving as little as can be.

Decides layouts only: it knows neither sizes nor rates, and nothing of moves under way. What holds
of every plan:

* No broker has two replicas of a partition.
* The replicas of a partition lie in as many racks as there are to choose from, and no rack gets
  a second one before all that can have one (KIP-36). A broker without rack is a rack of its own.
* Brokers differ by one replica at most, and by one partition they are preferred leader of,
  as far as racks and the moves that a plan may make allow it.
* A replica moves only where one of these asks for it. Without racks, that is the least there can
  be: each broker gives away or gets what parts it from its share, and none does both. The one
  that comes takes the place of the one that goes, so that the order of the others stays.

How: replicas that must go or come are placed on the broker with the least; then chains of
moves are looked for, breadth first, that end on a broker with two fewer than where they begin.
Where no chain is left the loads are as equal as they can be, which is what augmenting paths do for
any flow. Preferred leaders are levelled likewise, by reordering replicas.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import Layout

Racks = Mapping[int, str | None]
"""The rack of each broker that lives."""

Plan = dict[TopicPartition, tuple[int, ...]]
"""Replicas of the partitions that change, the preferred leader first."""

Hop = tuple[TopicPartition, int, int]
"""A partition, the broker that gives a replica or leadership away, and the one that gets it."""

Held = Mapping[int, set[TopicPartition]]
"""What each broker has: partitions with a replica on it, or those that prefer it as leader."""

Find = Callable[[int, int], TopicPartition | None]
"""The partition to go from one broker to another, if there is one."""

Apply = Callable[[TopicPartition, int, int], None]
"""What is done for a hop."""

_ENOUGH: Final = 2
"""Brokers whose loads differ by so much can be levelled further."""


class PlanError(ValueError):
    """There is no such layout; the message says why, and what would help."""


def balanced(layout: Layout, racks: Racks) -> Plan:
    """Replicas and preferred leaders spread evenly over all brokers, racks put right."""
    planner = _Planner(layout, racks)
    planner.refuse_the_absent()
    for tp in layout:
        planner.spread(tp)
    planner.level()
    planner.level_leaders()
    return planner.changes()


def extended(layout: Layout, racks: Racks, new: Collection[int]) -> Plan:
    """The brokers `new` get their share; nothing moves to any other broker."""
    _refuse_unknown(new, racks)
    planner = _Planner(layout, racks, receivers=new)
    planner.level()
    planner.level_leaders()
    return planner.changes()


def drained(
    layout: Layout, racks: Racks, leaving: Collection[int], *, share_racks: bool = False
) -> Plan:
    """The brokers `leaving` hold nothing any more; only what is on them moves.

    They need not live. With `share_racks`, replicas may come to share a rack that did not have
    to before.
    """
    there = {broker for replicas in layout.values() for broker in replicas}
    _refuse_unknown(set(leaving) - there, racks)
    staying = {broker: rack for broker, rack in racks.items() if broker not in leaving}
    planner = _Planner(layout, racks, receivers=staying, settled=True)
    for tp, replicas in layout.items():
        if not set(replicas).isdisjoint(leaving):
            planner.refuse_too_few(tp, len(replicas), share_racks=share_racks)
            planner.replace_all(tp, leaving)
    planner.level()
    planner.level_leaders()
    return planner.changes()


def refactored(layout: Layout, racks: Racks, factor: int, *, share_racks: bool = False) -> Plan:
    """Every partition has `factor` replicas; those that are too many go, no other one moves."""
    if factor < 1:
        raise PlanError("a partition has one replica at least")
    planner = _Planner(layout, racks, settled=True)
    for tp in layout:
        planner.refuse_too_few(tp, factor, share_racks=share_racks)
        planner.resize(tp, factor)
    planner.level()
    return planner.changes()


def _refuse_unknown(brokers: Iterable[int], racks: Racks) -> None:
    unknown = sorted(set(brokers) - racks.keys())
    if unknown:
        raise PlanError(f"there is no broker {unknown[0]}, or it does not run")


class _Planner:
    """A layout in the making.

    `receivers` are the brokers that may get replicas. With `settled`, replicas that were there
    before stay where they are unless the plan removes them.
    """

    def __init__(
        self,
        layout: Layout,
        racks: Racks,
        *,
        receivers: Collection[int] | None = None,
        settled: bool = False,
    ) -> None:
        bare = sorted(broker for broker, rack in racks.items() if rack is None)
        if bare and len(bare) < len(racks):
            raise PlanError(
                f"broker {bare[0]} has no rack and others have: give it one, or plan without racks"
            )
        self._before = layout
        self._racks = racks
        self._receivers = sorted(racks if receivers is None else receivers)
        self._settled = settled
        self._now = {tp: list(replicas) for tp, replicas in layout.items()}
        self._on: dict[int, set[TopicPartition]] = {broker: set() for broker in racks}
        self._led: dict[int, set[TopicPartition]] = {broker: set() for broker in racks}
        self._counts: dict[TopicPartition, Counter[str | int]] = {tp: Counter() for tp in layout}
        self._of_topic: Counter[tuple[int, str]] = Counter()
        for tp, replicas in layout.items():
            for broker in replicas:
                self._put(tp, broker)

    def changes(self) -> Plan:
        """The partitions that end otherwise than they began."""
        return {
            tp: tuple(replicas)
            for tp, replicas in sorted(self._now.items())
            if tuple(replicas) != self._before[tp]
        }

    # --- what cannot be

    def refuse_the_absent(self) -> None:
        """Refuse to balance around a broker that may come back with what it has."""
        absent = sorted(
            {broker for held in self._now.values() for broker in held} - self._on.keys()
        )
        if absent:
            raise PlanError(
                f"broker {absent[0]} has replicas and does not run: start it, or drain it"
            )

    def refuse_too_few(self, tp: TopicPartition, factor: int, *, share_racks: bool) -> None:
        """Refuse more replicas than brokers, and fewer racks than there were to choose from."""
        if factor > len(self._receivers):
            raise PlanError(
                f"{tp} is to have {factor} replicas; brokers for them: {len(self._receivers)}"
            )
        racks = {self._rack(broker) for broker in self._racks}
        left = {self._rack(broker) for broker in self._receivers}
        if not share_racks and len(left) < min(factor, len(racks)):
            raise PlanError(
                f"{tp} is to have {factor} replicas, and there are not enough racks: "
                f"{len(left)}, of {len(racks)} before"
            )

    # --- one partition

    def spread(self, tp: TopicPartition) -> None:
        """Move replicas out of racks that have two more than another one could have."""
        replicas = self._now[tp]
        for _ in range(len(replicas) ** 2):  # Each turn makes the racks' counts more even.
            counts = self._counts[tp]
            free = [broker for broker in self._receivers if broker not in replicas]
            if not free:
                return
            target = min(free, key=lambda each: (counts[self._rack(each)], self._order(each)))
            source = max(
                replicas[::-1],
                key=lambda each: (counts[self._rack(each)], len(self._on.get(each, ()))),
            )
            if counts[self._rack(source)] < counts[self._rack(target)] + _ENOUGH:
                return
            self._replace(tp, source, target)

    def replace_all(self, tp: TopicPartition, leaving: Collection[int]) -> None:
        """Put another broker in the place of each that leaves."""
        for source in [broker for broker in self._now[tp] if broker in leaving]:
            self._take(tp, source)
            index = self._now[tp].index(source)
            self._now[tp].remove(source)
            target = self._fittest(tp)
            self._now[tp].insert(index, target)
            self._put(tp, target)

    def resize(self, tp: TopicPartition, factor: int) -> None:
        """Add replicas at the end, or take those that are needed least; the first one stays."""
        replicas = self._now[tp]
        while len(replicas) > factor:
            counts = self._counts[tp]
            source = max(
                replicas,
                key=lambda each: (
                    each not in self._on,
                    each != replicas[0],
                    counts[self._rack(each)],
                    len(self._on.get(each, ())),
                    replicas.index(each),
                ),
            )
            self._take(tp, source)
            replicas.remove(source)
            if replicas[0] in self._led:
                self._led[replicas[0]].add(tp)
        while len(replicas) < factor:
            target = self._fittest(tp)
            replicas.append(target)
            self._put(tp, target)

    def _fittest(self, tp: TopicPartition) -> int:
        counts = self._counts[tp]
        free = [broker for broker in self._receivers if broker not in self._now[tp]]
        return min(free, key=lambda each: (counts[self._rack(each)], self._order(each)))

    # --- all together

    def level(self) -> None:
        """Move replicas until no chain of moves makes the brokers' loads more equal."""
        self._level(self._on, self._replica, self._replace)

    def level_leaders(self) -> None:
        """Reorder replicas until no chain of changes makes the numbers of leaders more equal."""
        self._level(self._led, self._leadership, self._promote)

    def _level(
        self, held: Held, find: Find, apply: Callable[[TopicPartition, int, int], None]
    ) -> None:
        """Apply chains from the fullest broker that has one, until none has.

        Brokers without a chain are asked again when all others are level, for chains between
        others may have made way. Each chain makes the loads' squares less: it ends.
        """
        stuck: set[int] = set()
        moved = False
        while True:
            source = self._fullest(held, stuck)
            if source is None and not (moved and stuck):
                return
            if source is None:
                stuck.clear()
                moved = False
                continue
            path, reached = self._path_from(source, held, find)
            for hop in path:
                apply(*hop)
                moved = True
            if not path:
                # From where this one comes to, those with no more than it come no further.
                stuck.update(reached)

    def _fullest(self, held: Held, stuck: Collection[int]) -> int | None:
        if not self._receivers:
            return None
        enough = min(len(held[broker]) for broker in self._receivers) + _ENOUGH
        sources = [each for each in held if each not in stuck and len(held[each]) >= enough]
        return max(sources, key=lambda each: (len(held[each]), -each), default=None)

    def _path_from(self, source: int, held: Held, find: Find) -> tuple[list[Hop], Collection[int]]:
        """The shortest chain from here to a broker with two less, or all that can be reached."""
        paths: dict[int, list[Hop]] = {source: []}
        queue = deque([source])
        targets = sorted(self._receivers, key=lambda each: (len(held[each]), each))
        while queue:
            here = queue.popleft()
            for target in targets:
                if target in paths:
                    continue
                tp = find(here, target)
                # A chain through one partition twice has a shorter one beside it.
                if tp is None or any(tp == used for used, _, _ in paths[here]):
                    continue
                paths[target] = [*paths[here], (tp, here, target)]
                if len(held[target]) + _ENOUGH <= len(held[source]):
                    return paths[target], paths.keys()
                queue.append(target)
        return [], paths.keys()

    def _replica(self, source: int, target: int) -> TopicPartition | None:
        """The partition that parts most easily with its replica on `source`, for `target`."""
        held = [
            tp
            for tp in self._on[source]
            if not (self._settled and source in self._before[tp]) and self._fits(tp, source, target)
        ]
        return min(held, key=lambda tp: self._price(tp, source, target), default=None)

    def _price(
        self, tp: TopicPartition, source: int, target: int
    ) -> tuple[int, int, TopicPartition]:
        before = self._before[tp]
        crowd = self._of_topic[target, tp.topic] - self._of_topic[source, tp.topic]
        return (source in before) - (target in before), crowd, tp

    def _fits(self, tp: TopicPartition, source: int, target: int) -> bool:
        if target in self._now[tp]:
            return False
        gives, gets = self._rack(source), self._rack(target)
        if gives == gets:
            return True
        counts = self._counts[tp]
        return counts[gets] < counts[gives]

    def _leadership(self, source: int, target: int) -> TopicPartition | None:
        """The partition led by `source` that `target` can lead with the least to-do."""
        found = None
        best = (_ENOUGH, TopicPartition("", 0))
        for tp in self._led[source]:
            first = self._before[tp][0]
            if target in self._now[tp] and not (self._settled and first in self._now[tp]):
                price = ((source == first) - (target == first), tp)
                if price < best:
                    best, found = price, tp
        return found

    # --- books

    def _order(self, broker: int) -> tuple[int, int]:
        return len(self._on[broker]), broker

    def _rack(self, broker: int) -> str | int:
        rack = self._racks.get(broker)
        return broker if rack is None else rack

    def _promote(self, tp: TopicPartition, source: int, target: int) -> None:
        replicas = self._now[tp]
        replicas.remove(target)
        replicas.insert(0, target)
        self._led[source].remove(tp)
        self._led[target].add(tp)

    def _replace(self, tp: TopicPartition, source: int, target: int) -> None:
        self._take(tp, source)
        replicas = self._now[tp]
        replicas[replicas.index(source)] = target
        self._put(tp, target)

    def _put(self, tp: TopicPartition, broker: int) -> None:
        self._counts[tp][self._rack(broker)] += 1
        if broker in self._on:
            self._on[broker].add(tp)
            self._of_topic[broker, tp.topic] += 1
            if self._now[tp][0] == broker:
                self._led[broker].add(tp)

    def _take(self, tp: TopicPartition, broker: int) -> None:
        self._counts[tp][self._rack(broker)] -= 1
        if broker in self._on:
            self._on[broker].remove(tp)
            self._of_topic[broker, tp.topic] -= 1
            self._led[broker].discard(tp)
