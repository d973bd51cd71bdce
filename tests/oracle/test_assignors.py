"""The assignors of Kafka's consumers, and of its broker, on hundreds of random groups, and ours."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from barnabas_broker.cli.groups.assignors import Plan, Subscriber, plan
from barnabas_broker.coordinator.group.consumer.assignors import ASSIGNORS
from tests.oracle.apache import KRAFT_VERSION, classpath
from tests.waiting import RUN, seconds

pytestmark = pytest.mark.jvm

PROGRAM: Final = Path(__file__).parent / "java" / "Assigning.java"
GROUPS: Final = 200

Group = tuple[list[Subscriber], dict[str, int]]


def some_group(seed: int, *, alike: bool) -> Group:
    """A group with what its members had before one of them came and topics grew, or the like.

    `alike`: all want the same topics.
    """
    chance = random.Random(seed)
    counts = {f"t{number}": chance.randrange(8) for number in range(chance.randint(1, 4))}
    before = {name: chance.randint(0, count) for name, count in counts.items()}
    everything = frozenset(counts)
    members = []
    for number in range(chance.randint(1, 7)):
        topics = everything
        if not alike:
            topics = frozenset(chance.sample(sorted(counts), chance.randint(1, len(counts))))
        name = f"m{chance.randrange(1000):03}-{number}"
        members.append(Subscriber(name, topics))
    chance.shuffle(members)
    there = members[: chance.randint(0, len(members))]
    had = plan("roundrobin", there, before) if there else {}
    return (
        [Subscriber(each.id, each.topics, has=had.get(each.id, frozenset())) for each in members],
        counts,
    )


def by_java(assignor: str, groups: Sequence[Group]) -> list[Plan]:
    """What the Java class assigns."""

    def words(texts: Sequence[str]) -> str:
        return ",".join(texts) or "-"

    lines = []
    for members, counts in groups:
        cast = [
            f"{each.id}:-:{words(sorted(each.topics))}:"
            + words([f"{topic}-{number}" for topic, number in sorted(each.has)])
            for each in members
        ]
        topics = words([f"{topic}={count}" for topic, count in counts.items()])
        lines.append(" ".join([assignor, topics, *cast]))
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", classpath(KRAFT_VERSION), str(PROGRAM)],
        input="\n".join(lines) + "\n",
        capture_output=True, text=True, timeout=seconds(RUN), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [_read(line) for line in done.stdout.splitlines()]


def _read(line: str) -> Plan:
    found: Plan = {}
    for part in line.split(" "):
        member, _, share = part.partition(":")
        pairs = (each.split("-") for each in share.split(",") if share != "-")
        found[member] = frozenset((topic, int(number)) for topic, number in pairs)
    return found


def by_us(assignor: str, group: Group) -> Plan:
    """What the broker's assignor of this name assigns."""
    members, counts = group
    ids = {topic: UUID(int=number) for number, topic in enumerate(sorted(counts), 1)}
    names = {each: topic for topic, each in ids.items()}
    found = ASSIGNORS[assignor](
        {each.id: frozenset(ids[topic] for topic in each.topics) for each in members},
        {ids[topic]: count for topic, count in counts.items()},
        {each.id: frozenset((ids[topic], n) for topic, n in each.has) for each in members},
    )
    return {
        member: frozenset((names[topic], number) for topic, number in share)
        for member, share in found.items()
    }


def unevenness(found: Plan) -> int:
    """The sum of the squares of what members have: the less, the more even."""
    return sum(len(share) ** 2 for share in found.values())


def kept(found: Plan, group: Group) -> int:
    """How many partitions stay where they are."""
    return sum(len(found[each.id] & each.has) for each in group[0])


def is_whole(found: Mapping[str, frozenset[tuple[str, int]]], group: Group) -> bool:
    """Whether everything that somebody wants is somebody's, once, and nobody has anything else."""
    members, counts = group
    wanted = frozenset[str]().union(*(each.topics for each in members))
    given = sorted(partition for share in found.values() for partition in share)
    fits = all(topic in each.topics for each in members for topic, _ in found[each.id])
    return fits and given == sorted((t, n) for t in wanted for n in range(counts[t]))


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_the_simple_ones_agree_partition_by_partition(assignor: str, alike: bool) -> None:
    """`barnabas groups plan` tells what Java's consumers would do."""
    groups = [some_group(seed, alike=alike) for seed in range(GROUPS)]
    for seed, (group, java) in enumerate(zip(groups, by_java(assignor, groups), strict=True)):
        assert plan(assignor, *group) == java, (seed, group)


@pytest.mark.parametrize("alike", [True, False])
def test_the_broker_s_range_agrees_partition_by_partition(alike: bool) -> None:
    """With what the Java class does in a broker of Apache."""
    groups = [some_group(seed, alike=alike) for seed in range(GROUPS)]
    for seed, (group, java) in enumerate(zip(groups, by_java("server-range", groups), strict=True)):
        assert by_us("range", group) == java, (seed, group)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("java_s", ["sticky", "server-uniform"])
def test_the_sticky_one_is_as_even_and_keeps_as_much(java_s: str, alike: bool) -> None:
    """Never less even than Java's; with the same topics for all, nobody moves more either.

    With topics of their own it may be one partition more: to find the fewest takes longer than a
    heartbeat should. Java's is less even in one of thirty such groups, ours in none.
    """
    surplus = 0 if alike else 1
    groups = [some_group(seed, alike=alike) for seed in range(GROUPS)]
    for seed, (group, java) in enumerate(zip(groups, by_java(java_s, groups), strict=True)):
        ours = by_us("uniform", group)
        assert is_whole(ours, group), (seed, group)
        assert is_whole(java, group), (seed, group)
        assert unevenness(ours) <= unevenness(java), (seed, group, ours, java)
        if unevenness(ours) == unevenness(java):
            assert kept(ours, group) + surplus >= kept(java, group), (seed, group, ours, java)
