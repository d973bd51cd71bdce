"""A group: votes, subscriptions, and the places of static members."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.limits import Limits
from barnabas_broker.coordinator.group.members import Client, Member
from barnabas_broker.coordinator.group.states import (
    NEXT,
    GroupEvent,
    GroupState,
    following,
    may_rebalance,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.coordinator.group.scenarios import subscription


def group_of(*choices: tuple[str, ...], metadata: bytes = b"") -> Group:
    """Members m0, m1, … that support these protocols."""
    group = Group("g", now_ms=0)
    for number, names in enumerate(choices):
        member = Member(
            id=f"m{number}",
            instance_id=f"i{number}",
            client=Client("c", "/h"),
            rebalance_timeout_ms=1000 + number,
            session_timeout_ms=1000,
            protocols=tuple((name, metadata) for name in names),
        )
        group.add(member, "consumer")
    return group


def test_the_protocol_with_most_votes_wins() -> None:
    """Among those that everybody supports; a vote is the first of those in a member's list."""
    assert group_of(("a", "b"), ("b", "a"), ("b", "a")).elect_protocol() == "b"
    assert group_of(("c", "a", "b"), ("b", "a")).elect_protocol() == "a"
    assert group_of(("a", "b"), ("b", "a")).elect_protocol() == "a"


class Name(str):
    """A name that counts how often any such name was compared with another."""

    compared = 0

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_a_vote_compares_each_name_once() -> None:
    """Members may name ten thousand, of which none needs to be looked for among all others."""
    common = [Name(f"common-{number}") for number in range(100)]
    choices = [
        (*(Name(f"{member}-{number}") for number in range(100)), *common) for member in range(10)
    ]
    group = group_of(*choices)
    Name.compared = 0
    assert group.elect_protocol() == common[0]
    assert Name.compared <= sum(map(len, choices))


def test_a_protocol_that_one_member_names_twice_is_not_supported_by_two() -> None:
    """What is counted is members."""
    assert group_of(("a", "a", "b"), ("b",)).elect_protocol() == "b"


def test_the_metadata_size_is_kept_as_members_join_and_leave() -> None:
    """Whether there is room for one more is known without a look at the others."""
    group = group_of(("a", "b"), ("a",), ("a", "c"), metadata=b"something")

    def counted() -> int:
        return sum(member.metadata_bytes for member in group.members.values())

    assert group.metadata_bytes == counted() > 0
    group.adapt(group.members["m1"], (("a", bytes(1000)), ("d", b"")))
    assert group.metadata_bytes == counted() > 1000
    group.replace_static("m0", "m3")
    group.remove("m1")
    assert group.metadata_bytes == counted() < 1000
    group.remove("m2")
    group.remove("m3")
    assert group.metadata_bytes == 0


def test_the_slowest_member_sets_the_rebalance_timeout() -> None:
    """Everybody waits for it."""
    assert group_of(("a",), ("a",)).rebalance_timeout_ms == 1001


def test_a_group_with_members_has_a_leader() -> None:
    """The first to come, then the next."""
    group = group_of(("a",), ("a",))
    assert group.leader_id == "m0"
    group.remove("m0")
    assert group.leader_id == "m1"
    group.remove("m1")
    assert group.leader_id is None


def test_a_place_goes_to_the_next_incarnation() -> None:
    """Leadership goes with it."""
    group = group_of(("a",))
    group.replace_static("m0", "new")
    assert group.leader_id == "new"
    assert group.check_member("m0", "i0") is ErrorCode.FENCED_INSTANCE_ID
    assert group.check_member("new", "i9") is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_member("new", "i0") is None


def test_subscriptions_are_read_from_consumers_metadata() -> None:
    """None where the broker cannot tell."""
    group = group_of(("a",), metadata=subscription("x", "y"))
    group.protocol = "a"
    assert group.subscriptions() == frozenset("xy")
    group.protocol_type = "connect"
    assert group.subscriptions() is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "adapt", "join", "answer", "replace", "restore"]),
            st.integers(0, 5),
            st.sampled_from([("a",), ("b", "a"), ("a", "b"), ("c",)]),
        ),
        max_size=40,
    )
)
def test_pending_members_and_common_protocols_are_kept_incrementally(
    steps: list[tuple[str, int, tuple[str, ...]]],
) -> None:
    """Whatever members do, it is what one would find by looking."""
    group = Group("g", now_ms=0)
    for number, (step, which, names) in enumerate(steps):
        protocols = tuple((name, b"") for name in names)
        members = list(group.members.values())
        member = members[which % len(members)] if members else None
        if step == "add" or member is None:
            group.add(newcomer(f"m{number}", protocols), "consumer")
        elif step == "remove":
            group.remove(member.id)
        elif step == "adapt":
            group.adapt(member, protocols)
        elif step == "join":
            member.joining = object()
        elif step == "answer":
            member.joining = None
        elif step == "replace":
            group.replace_static(member.id, f"m{number}")
        else:
            written = group.record({}).metadata
            assert written is not None
            group.restore(written)
        group.state = GroupState.PREPARING_REBALANCE
        everybody = list(group.members.values())
        assert group.all_joined == all(each.joining is not None for each in everybody)
        known = {name for each in everybody for name, _ in each.protocols}
        common = {n for n in known if all(n in dict(each.protocols) for each in everybody)}
        supported = {name for name in "abc" if group.supports("consumer", ((name, b""),))}
        assert not everybody or supported == common & set("abc")


def newcomer(member_id: str, protocols: tuple[tuple[str, bytes], ...]) -> Member:
    """A member that has just joined."""
    return Member(
        id=member_id,
        instance_id=f"i-{member_id}",
        client=Client("c", "/h"),
        rebalance_timeout_ms=1000,
        session_timeout_ms=1000,
        protocols=protocols,
        joining=object(),
    )


def test_the_defaults_are_kafkas() -> None:
    """But for the size of a group, which is bounded here; minutes of retention become ms."""
    assert Limits.from_settings(BrokerSettings.from_mapping({})) == Limits(
        session_min_ms=6000,
        session_max_ms=1_800_000,
        initial_delay_ms=3000,
        members_max=10_000,
        metadata_bytes_max=4096,
        join_bytes_max=4 * (2**20 + 12),
        retention_ms=7 * 24 * 3600 * 1000,
    )


def test_the_size_of_a_group_is_what_is_given() -> None:
    """More than the default as well, up to Kafka's own."""
    sizes = {"group.max.size": str(2**31 - 1), "group.consumer.max.size": "20000"}
    limits = Limits.from_settings(BrokerSettings.from_mapping(sizes))
    assert (limits.members_max, limits.consumers.members_max) == (2**31 - 1, 20_000)
    limits = Limits.from_settings(BrokerSettings.from_mapping({}))
    assert (limits.members_max, limits.consumers.members_max) == (10_000, 10_000)


def test_large_batches_allow_for_large_groups() -> None:
    """The record of a group is one of them."""
    settings = BrokerSettings.from_mapping({"message.max.bytes": str(100 << 20)})
    assert Limits.from_settings(settings).members_bytes_max == 400 << 20
    assert Limits.from_settings(settings).join_bytes_max == 400 << 20


def test_every_state_and_event_is_in_the_table() -> None:
    """All states can be come to, all but the last can be left, and nothing comes after that."""
    assert {event for _, event in NEXT} == set(GroupEvent)
    assert {state for state, _ in NEXT} == set(GroupState) - {GroupState.DEAD}
    assert set(NEXT.values()) == set(GroupState)


@pytest.mark.parametrize("event", GroupEvent)
@pytest.mark.parametrize("state", GroupState)
def test_an_event_that_is_not_listed_for_a_state_fails(
    state: GroupState, event: GroupEvent, violations: list[str]
) -> None:
    """Of all pairs, those of the table lead on, and no other one is passed over."""
    if (state, event) in NEXT:
        assert following(state, event) is NEXT[state, event]
        return
    with pytest.raises(AssertionError, match=f"in state {state.value} it cannot be"):
        following(state, event)
    assert len(violations) == 1
    violations.clear()


def test_rebalances_begin_where_none_goes_on() -> None:
    """In every living state but the one that is a rebalance already."""
    assert {state for state in GroupState if may_rebalance(state)} == {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    }


def test_fields_of_a_member() -> None:
    """Metadata by protocol, votes in its order, and whether it waits for us."""
    member = Member(
        id="m",
        instance_id=None,
        client=Client("c", "/h"),
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=(("a", b"1"), ("b", b"2")),
    )
    assert (member.metadata("b"), member.metadata("x"), member.metadata(None)) == (b"2", b"", b"")
    assert (member.vote({"b", "a"}), member.vote({"x"})) == ("a", None)
    assert not member.is_static
    assert not member.waits
    member.joining = "somebody"
    assert member.waits
    member.is_new = True
    assert not member.waits
