"""How far a group is in each partition: the rows of `--describe --offsets`, without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas_broker.cli.groups.cluster import Described, Member
from barnabas_broker.cli.groups.strategies import Partition


@dataclass(frozen=True, slots=True)
class Position:
    """A partition, the group's offset in it, where it ends, and which member reads it."""

    partition: Partition
    committed: int | None
    end: int | None
    member: Member | None

    @property
    def lag(self) -> int | None:
        """Records left to read; None where the group never committed or the end is not known."""
        if self.committed is None or self.end is None:
            return None
        return self.end - self.committed


def concerned(group: Described, committed: Iterable[Partition]) -> list[Partition]:
    """Every partition that is assigned or has a committed offset, in order."""
    assigned = {each for member in group.members for each in member.partitions}
    return sorted(assigned.union(committed))


def positions(
    group: Described, committed: Mapping[Partition, int], ends: Mapping[Partition, int]
) -> list[Position]:
    """Where the group is in each partition that concerns it."""
    owners = {each: member for member in group.members for each in member.partitions}
    return [
        Position(each, committed.get(each), ends.get(each), owners.get(each))
        for each in concerned(group, committed)
    ]


def by_topic(partitions: Iterable[Partition]) -> str:
    """`orders(0,1,2), other(5)`."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return ", ".join(f"{topic}({','.join(map(str, each))})" for topic, each in topics.items())
