"""Who gets what from the assignors of the broker: all, once, evenly, and with few moves."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.coordinator.group.consumer.assignors import (
    ASSIGNORS,
    Assignment,
    assign_range,
    assign_uniform,
)

T, U, V = UUID(int=1), UUID(int=2), UUID(int=3)
TU = frozenset({T, U})


def numbers(assignment: Assignment, topic: UUID) -> dict[str, list[int]]:
    return {
        member: sorted(number for id_, number in some if id_ == topic)
        for member, some in assignment.items()
    }


def test_range_gives_neighbours_and_the_rest_to_the_first() -> None:
    """Seven partitions for three: 3, 2, 2; and the same numbers of every topic."""
    members = {"a": TU, "b": TU, "c": TU}
    found = assign_range(members, {T: 7, U: 7}, {})
    assert numbers(found, T) == {"a": [0, 1, 2], "b": [3, 4], "c": [5, 6]}
    assert numbers(found, U) == numbers(found, T)


def test_range_of_more_members_than_partitions() -> None:
    """The last get nothing; each topic counts only those who want it."""
    found = assign_range({"a": TU, "b": TU, "c": frozenset({U})}, {T: 1, U: 3}, {})
    assert numbers(found, T) == {"a": [0], "b": [], "c": []}
    assert numbers(found, U) == {"a": [0], "b": [1], "c": [2]}


def test_uniform_keeps_what_it_can() -> None:
    """A third member takes two from each of two, and nothing moves between these."""
    two = assign_uniform({"a": TU, "b": TU}, {T: 6, U: 6}, {})
    three = assign_uniform({"a": TU, "b": TU, "c": TU}, {T: 6, U: 6}, two)
    assert {member: len(some) for member, some in three.items()} == {"a": 4, "b": 4, "c": 4}
    assert three["a"] < two["a"]
    assert three["b"] < two["b"]


def test_uniform_gives_what_few_want_to_these() -> None:
    """The one that wants both leaves the shared topic to the others."""
    members = {"a": TU, "b": frozenset({T}), "c": frozenset({T})}
    found = assign_uniform(members, {T: 4, U: 2}, {})
    assert numbers(found, U) == {"a": [0, 1], "b": [], "c": []}
    assert {member: len(some) for member, some in found.items()} == {"a": 2, "b": 2, "c": 2}


subscriptions = st.dictionaries(
    st.sampled_from("abcdef"), st.frozensets(st.sampled_from([T, U, V])), min_size=1
)
counts = st.fixed_dictionaries({T: st.integers(0, 9), U: st.integers(0, 9), V: st.integers(0, 9)})


@given(subscriptions, subscriptions, counts, st.sampled_from(sorted(ASSIGNORS)))
def test_each_subscribed_partition_has_one_owner(
    before: dict[str, frozenset[UUID]],
    after: dict[str, frozenset[UUID]],
    counts: dict[UUID, int],
    name: str,
) -> None:
    """Whatever changed, and once more from the result nothing moves."""
    assign = ASSIGNORS[name]
    found = assign(after, counts, assign(before, counts, {}))
    given_out = [each for some in found.values() for each in some]
    wanted = {(t, n) for t, count in counts.items() for n in range(count)}
    wanted = {each for each in wanted if any(each[0] in topics for topics in after.values())}
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted
    assert all(topic in after[member] for member, some in found.items() for topic, _ in some)
    assert assign(after, counts, found) == found


@given(subscriptions, subscriptions, counts)
def test_uniform_is_even(
    before: dict[str, frozenset[UUID]],
    after: dict[str, frozenset[UUID]],
    counts: dict[UUID, int],
) -> None:
    """Nobody could take a partition from somebody who has at least two more."""
    found = assign_uniform(after, counts, assign_uniform(before, counts, {}))
    for some in found.values():
        for topic, _ in some:
            for other, theirs in found.items():
                assert topic not in after[other] or len(some) - len(theirs) < 2


def test_members_in_between_hand_partitions_on() -> None:
    """One with much has nothing for one with little, but somebody else has: a chain of two."""
    subscriptions = {
        "rich": frozenset({T, U}),
        "between": frozenset({U, V}),
        "poor": frozenset({V}),
    }
    before = {
        "rich": frozenset((U, number) for number in range(4)),
        "between": frozenset((V, number) for number in range(3)),
    }
    found = assign_uniform(subscriptions, {U: 4, V: 3}, before)
    assert sorted(map(len, found.values())) == [2, 2, 3]
    assert len(found["poor"]) >= 2


def test_newly_assigned_partitions_move_before_retained_ones() -> None:
    """And what somebody had comes back to it where the numbers stay the same."""
    subscriptions = {name: frozenset({T}) for name in "abc"} | {"d": frozenset({T, U})}
    before = {"d": frozenset({(T, 0), (T, 1)})}
    found = assign_uniform(subscriptions, {T: 6, U: 2}, before)
    assert sorted(map(len, found.values())) == [2, 2, 2, 2]
    assert found["d"] == {(U, 0), (U, 1)}


def test_large_groups_with_topics_of_their_own_take_no_longer() -> None:
    """Two halves that cannot help each other: nothing is searched in vain for long."""
    one = {f"a{number}": frozenset({T}) for number in range(400)}
    two = {f"b{number}": frozenset({U}) for number in range(400)}
    found = assign_uniform({**one, **two}, {T: 4000, U: 400}, {})
    assert {len(found[name]) for name in one} == {10}
    assert {len(found[name]) for name in two} == {1}
