"""The assignors of the broker: from subscriptions and partition counts to a target assignment.

Pure functions of their arguments, and the same for the same: members are taken in the order of
their ids, topics in that of theirs.

`uniform` evens out how many partitions each member has, and moves few: as few as that allows where
all want the same topics. `range` gives each member neighbouring partitions of every topic, so that
members with the same topics get the same numbers of each; of topics with a remainder the first
members get one more.
"""

import heapq
from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_broker.invariants import violated

Subscriptions = Mapping[str, frozenset[UUID]]
"""The topics that each member wants, by member id."""
Assignment = dict[str, Partitions]
Assignor = Callable[[Subscriptions, Mapping[UUID, int], Mapping[str, Partitions]], Assignment]
"""Subscriptions, partitions by topic, and the assignment before; all members are in the result."""


def assign_range(
    subscriptions: Subscriptions, counts: Mapping[UUID, int], before: Mapping[str, Partitions]
) -> Assignment:
    """Share out each topic by itself, as Kafka's server-side RangeAssignor; `before` is ignored."""
    del before
    assigned: dict[str, set[tuple[UUID, int]]] = {member: set() for member in subscriptions}
    for topic, count in counts.items():
        wanting = [member for member in sorted(subscriptions) if topic in subscriptions[member]]
        if not wanting:
            continue
        each, extra = divmod(count, len(wanting))
        start = 0
        for place, member in enumerate(wanting):
            end = start + each + (place < extra)
            assigned[member].update((topic, partition) for partition in range(start, end))
            start = end
        assert start == count, violated("every partition of a topic has one reader")
    return {member: frozenset(some) for member, some in assigned.items()}


def assign_uniform(
    subscriptions: Subscriptions, counts: Mapping[UUID, int], before: Mapping[str, Partitions]
) -> Assignment:
    """Keep what can be kept, give the rest to the member with least, and even out what is left."""
    even = _Evening(subscriptions, counts)
    for member in sorted(subscriptions):
        even.keep(member, before.get(member, frozenset()))
    if len(set(subscriptions.values())) == 1:
        even.trim_to_quota()
    even.give_out()
    even.level()
    even.give_back()
    assert sum(map(len, even.assigned.values())) == even.total, violated(
        "every partition of a subscribed topic has one reader"
    )
    return {member: frozenset(some) for member, some in even.assigned.items()}


class _Evening:
    """An assignment in the making."""

    def __init__(self, subscriptions: Subscriptions, counts: Mapping[UUID, int]) -> None:
        self._subscriptions = subscriptions
        self._topics = sorted(counts, key=lambda topic: topic.int)
        alike: dict[frozenset[UUID], list[str]] = {}
        for member in sorted(subscriptions):
            alike.setdefault(subscriptions[member], []).append(member)
        self._wanting = {
            topic: sorted(
                member for some, members in alike.items() if topic in some for member in members
            )
            for topic in self._topics
        }
        self._free = {
            (topic, partition)
            for topic in self._topics
            if self._wanting[topic]
            for partition in range(counts[topic])
        }
        #: partitions with a subscriber
        self.total = len(self._free)
        self._kept: dict[str, set[tuple[UUID, int]]] = {}
        self.assigned: dict[str, set[tuple[UUID, int]]] = {
            member: set() for member in subscriptions
        }

    def keep(self, member: str, partitions: Partitions) -> None:
        wanted = self._subscriptions[member]
        kept = {each for each in partitions if each[0] in wanted and each in self._free}
        self.assigned[member] |= kept
        self._free -= kept
        self._kept[member] = kept
        assert not kept & self._free, violated("a partition is given once")

    def trim_to_quota(self) -> None:
        """Where all want the same: no member keeps more than its share."""
        quota, extra = divmod(self.total, len(self.assigned))
        for some in self.assigned.values():
            limit = quota
            if len(some) > quota and extra:
                limit, extra = quota + 1, extra - 1
            for surplus in sorted(some, key=_order)[limit:]:
                some.discard(surplus)
                self._free.add(surplus)

    def give_out(self) -> None:
        """Give free partitions to those with least, topics that few want first."""
        heaps: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        topics = sorted(self._topics, key=lambda topic: (len(self._wanting[topic]), topic.int))
        place = {topic: number for number, topic in enumerate(topics)}
        for partition in sorted(self._free, key=lambda each: (place[each[0]], each[1])):
            wanting = tuple(self._wanting[partition[0]])
            heap = heaps.get(wanting)
            if heap is None:
                heap = [(len(self.assigned[member]), member) for member in wanting]
                heapq.heapify(heap)
                heaps[wanting] = heap
            # Entries of members that also want other topics may be stale, and are only too low.
            while heap[0][0] != len(self.assigned[heap[0][1]]):
                member = heap[0][1]
                heapq.heapreplace(heap, (len(self.assigned[member]), member))
            member = heap[0][1]
            self.assigned[member].add(partition)
            heapq.heapreplace(heap, (len(self.assigned[member]), member))
            assert partition[0] in self._subscriptions[member], violated(
                "a member reads topics that it wants"
            )
        self._free.clear()
        assert sum(map(len, self.assigned.values())) == self.total, violated(
            "every partition of a subscribed topic has one reader"
        )

    def level(self) -> None:
        """Move partitions from members with more to such with at least two fewer.

        Directly where that goes, and else through others in between, which end up with as many as
        before. Each move lowers the sum of the squares of the counts, so it comes to an end.
        """
        moved = True
        while moved:
            moved = False
            for member in sorted(self.assigned, key=lambda each: (-len(self.assigned[each]), each)):
                moved = self._relieve(member) or moved
            moved = moved or any(self._pass_on(member) for member in self._richest())

    def _richest(self) -> list[str]:
        """Of all that want the same, the one with most: if it cannot help, no other can."""
        ranked = sorted(self.assigned, key=lambda each: (len(self.assigned[each]), each))
        return sorted({self._subscriptions[each]: each for each in ranked}.values())

    def _pass_on(self, member: str) -> bool:
        """Have a chain of members each hand one on to the next, the last of which has few."""
        enough = len(self.assigned[member]) - 2
        if enough < min(map(len, self.assigned.values())):
            return False
        came: dict[str, tuple[str, tuple[UUID, int]]] = {}
        line, seen = [member], set[UUID]()
        for giver in line:
            for partition in sorted(self.assigned[giver], key=self._dearness(giver)):
                if partition[0] in seen:
                    continue  # Every subscriber of this topic is queued already.
                seen.add(partition[0])
                for taker in self._wanting[partition[0]]:
                    if taker == member or taker in came:
                        continue
                    came[taker] = giver, partition
                    line.append(taker)
                    if len(self.assigned[taker]) <= enough:
                        self._hand_along(taker, member, came)
                        return True
        return False

    def _hand_along(
        self, last: str, first: str, came: Mapping[str, tuple[str, tuple[UUID, int]]]
    ) -> None:
        taker = last
        while taker != first:
            giver, partition = came[taker]
            self.assigned[giver].discard(partition)
            self.assigned[taker].add(partition)
            taker = giver

    def _dearness(self, member: str) -> Callable[[tuple[UUID, int]], tuple[bool, int, int]]:
        """What a member was just given is handed on before what it had."""
        kept = self._kept[member]
        return lambda each: (each in kept, *_order(each))

    def _relieve(self, member: str) -> bool:
        least = min(map(len, self.assigned.values()))
        if len(self.assigned[member]) - least < 2:
            return False
        # What it was only just given first: no member has to revoke that.
        given = self.assigned[member] - self._kept[member]
        moved = self._hand_on(member, given)
        return self._hand_on(member, self.assigned[member] - given) or moved

    def _hand_on(self, member: str, partitions: set[tuple[UUID, int]]) -> bool:
        moved = False
        for topic in self._topics:
            own = sorted(each for each in partitions if each[0] == topic)
            while own:
                taker = min(self._wanting[topic], key=lambda each: (len(self.assigned[each]), each))
                if len(self.assigned[member]) - len(self.assigned[taker]) < 2:
                    break
                partition = own.pop()
                self.assigned[member].discard(partition)
                self.assigned[taker].add(partition)
                moved = True
        return moved

    def give_back(self) -> None:
        """Swap what another member had before for what it was given itself.

        Counts stay as they are, and each swap lets more stay where it was.
        """
        holder = {each: member for member, some in self.assigned.items() for each in some}
        for member in sorted(self._kept):
            for lost in sorted(self._kept[member] - self.assigned[member], key=_order):
                other = holder[lost]
                given = sorted(self.assigned[member] - self._kept[member], key=_order)
                wanted = self._subscriptions[other]
                for instead in given:
                    if instead[0] in wanted:
                        self.assigned[member] ^= {lost, instead}
                        self.assigned[other] ^= {lost, instead}
                        holder[lost], holder[instead] = member, other
                        break


def _order(partition: tuple[UUID, int]) -> tuple[int, int]:
    return partition[0].int, partition[1]


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniform, "range": assign_range}
"""The assignors by the names that members ask for."""

CLASS_NAMES: Final[Mapping[str, str]] = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""The assignors by the names that Kafka's settings know them under."""
