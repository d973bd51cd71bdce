"""The assignors of Kafka's consumers, run without any consumer.

`range` and `roundrobin` give what the Java classes give, partition by partition. `sticky`,
`cooperative-sticky` and `uniform` promise two things: no member has two partitions more than
another that could take one, and few move: as few as that allows where all want the same topics.
Which of several equally good partitions moves is each implementation's own choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from barnabas_broker.cli.groups.strategies import Partition
from barnabas_broker.coordinator.group.consumer.assignors import assign_uniform


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member, the topics it wants, and the partitions it has."""

    id: str
    topics: frozenset[str]
    client_id: str = ""
    instance_id: str | None = None
    has: frozenset[Partition] = frozenset()


Counts = Mapping[str, int]
"""How many partitions each topic has."""
Plan = dict[str, frozenset[Partition]]
"""What each member would have, by its id."""
Assignor = Callable[[list[Subscriber], Counts], Plan]


def plan(assignor: str, members: list[Subscriber], counts: Counts) -> Plan:
    """What each member would get; KeyError where there is no such assignor."""
    # As Java sorts them: static members first, by the ids they were given.
    members = sorted(members, key=lambda it: (it.instance_id is None, it.instance_id or it.id))
    return ASSIGNORS[assignor](members, counts)


def assign_range(members: list[Subscriber], counts: Counts) -> Plan:
    """Neighbouring partitions of each topic; the first members get one more of what is left."""
    got: dict[str, set[Partition]] = {member.id: set() for member in members}
    for topic, count in counts.items():
        wanting = [member for member in members if topic in member.topics]
        start = 0
        for place, member in enumerate(wanting):
            size = count // len(wanting) + (place < count % len(wanting))
            got[member.id].update((topic, number) for number in range(start, start + size))
            start += size
    return {member: frozenset(some) for member, some in got.items()}


def assign_round_robin(members: list[Subscriber], counts: Counts) -> Plan:
    """All partitions in order, assigned in turn; members without the topic are skipped."""
    got: dict[str, set[Partition]] = {member.id: set() for member in members}
    wanted = frozenset[str]().union(*(member.topics for member in members))
    turn = 0
    for topic in sorted(wanted & counts.keys()):
        for number in range(counts[topic]):
            while topic not in members[turn % len(members)].topics:
                turn += 1
            got[members[turn % len(members)].id].add((topic, number))
            turn += 1
    return {member: frozenset(some) for member, some in got.items()}


def assign_sticky(members: list[Subscriber], counts: Counts) -> Plan:
    """As even as can be, with as much as can be left where it is."""
    ids = {topic: UUID(int=place) for place, topic in enumerate(sorted(counts), 1)}
    names = {each: topic for topic, each in ids.items()}
    found = assign_uniform(
        {
            member.id: frozenset(ids[topic] for topic in member.topics if topic in ids)
            for member in members
        },
        {ids[topic]: count for topic, count in counts.items()},
        {
            member.id: frozenset((ids[topic], each) for topic, each in member.has if topic in ids)
            for member in members
        },
    )
    return {
        member: frozenset((names[topic], number) for topic, number in some)
        for member, some in found.items()
    }


ASSIGNORS: Mapping[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_sticky,
    "uniform": assign_sticky,
}
