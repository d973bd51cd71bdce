"""Assignors as pure functions: the tables that real Java consumers are held to as well."""

import random
from collections.abc import Mapping

import pytest

from barnabas_broker.cli.groups.assignors import Plan, Subscriber, plan

THREE = ("C1", "C2", "C3")


def members(subscriptions: Mapping[str, str], has: Plan | None = None) -> list[Subscriber]:
    """`{"C1": "12"}` subscribes to T1 and T2."""
    return [
        Subscriber(name, frozenset(f"T{d}" for d in digits), has=(has or {}).get(name, frozenset()))
        for name, digits in subscriptions.items()
    ]


def table(**rows: str) -> Plan:
    """`C1="T1:036 T2:25"` as what C1 gets."""
    return {
        name: frozenset(
            (topic, int(number))
            for part in row.split()
            for topic, numbers in [part.split(":")]
            for number in numbers
        )
        for name, row in rows.items()
    }


def counts(*partitions: int) -> dict[str, int]:
    """T1 and so on with so many partitions."""
    return {f"T{place}": count for place, count in enumerate(partitions, 1)}


@pytest.mark.parametrize(
    ("assignor", "partitions", "expected"),
    [
        ("range", [6], table(C1="T1:01", C2="T1:23", C3="T1:45")),
        ("range", [7], table(C1="T1:012", C2="T1:34", C3="T1:56")),
        (
            "range",
            [7, 7, 7],
            table(C1="T1:012 T2:012 T3:012", C2="T1:34 T2:34 T3:34", C3="T1:56 T2:56 T3:56"),
        ),
        (
            "roundrobin",
            [7, 7, 7],
            table(C1="T1:036 T2:25 T3:14", C2="T1:14 T2:036 T3:25", C3="T1:25 T2:14 T3:036"),
        ),
        ("roundrobin", [3, 3], table(C1="T1:0 T2:0", C2="T1:1 T2:1", C3="T1:2 T2:2")),
    ],
)
def test_members_with_the_same_topics(assignor: str, partitions: list[int], expected: Plan) -> None:
    """In the order of their ids, whatever order they come in."""
    topics = "123"[: len(partitions)]
    team = members(dict.fromkeys(reversed(THREE), topics))
    assert plan(assignor, team, counts(*partitions)) == expected


def test_range_by_the_number_of_members() -> None:
    """Six partitions for two and for four; who comes too late gets none."""
    two = plan("range", members({"C1": "1", "C2": "1"}), counts(6))
    assert two == table(C1="T1:012", C2="T1:345")
    four = plan("range", members({"C1": "1", "C2": "1", "C3": "1", "C4": "1"}), counts(6))
    assert four == table(C1="T1:01", C2="T1:23", C3="T1:4", C4="T1:5")
    assert plan("range", members({"C1": "1", "C2": "1"}), counts(1)) == table(C1="T1:0", C2="")


def test_round_robin_skips_members_without_a_subscription() -> None:
    """With all members, and when C1 has gone."""
    all_three = plan("roundrobin", members({"C1": "1", "C2": "12", "C3": "123"}), counts(1, 2, 3))
    assert all_three == table(C1="T1:0", C2="T2:0", C3="T2:1 T3:012")
    two = plan("roundrobin", members({"C2": "12", "C3": "123"}), counts(1, 2, 3))
    assert two == table(C2="T1:0 T2:1", C3="T2:0 T3:012")


def test_static_members_come_first() -> None:
    """By the ids they were given."""
    team = [
        Subscriber("a", frozenset(["T1"])),
        Subscriber("c", frozenset(["T1"]), instance_id="2"),
        Subscriber("b", frozenset(["T1"]), instance_id="3"),
    ]
    expected = table(c="T1:0", b="T1:1", a="T1:2")
    assert plan("range", team, counts(3)) == plan("roundrobin", team, counts(3)) == expected


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "uniform"])
def test_sticky_keeps_what_members_have(assignor: str) -> None:
    """C3 fails and its partitions are shared; C1 fails and the others keep theirs."""
    before = plan("roundrobin", members(dict.fromkeys(THREE, "12")), counts(3, 3))
    after = plan(assignor, members({"C1": "12", "C2": "12"}, before), counts(3, 3))
    assert all(before[name] < after[name] for name in ("C1", "C2"))
    assert {len(some) for some in after.values()} == {3}
    before = plan(assignor, members({"C1": "1", "C2": "12", "C3": "123"}), counts(1, 2, 3))
    assert before == table(C1="T1:0", C2="T2:01", C3="T3:012")
    after = plan(assignor, members({"C2": "12", "C3": "123"}, before), counts(1, 2, 3))
    assert after == {"C2": before["C2"] | {("T1", 0)}, "C3": before["C3"]}


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
def test_every_subscribed_partition_is_assigned_once(assignor: str) -> None:
    """For any members and topics; nobody gets what it does not want."""
    chance = random.Random(6)
    for _ in range(200):
        topics = counts(*(chance.randrange(8) for _ in range(4)))
        team = members(
            {
                f"m{n}": "".join(chance.sample("1234", chance.randrange(5)))
                for n in range(chance.randrange(1, 7))
            }
        )
        found = plan(assignor, team, topics)
        given = [each for some in found.values() for each in some]
        wanted = {topic for member in team for topic in member.topics}
        assert sorted(given) == sorted((t, n) for t in wanted for n in range(topics[t]))
        assert all(topic in m.topics for m in team for topic, _ in found[m.id])
