"""Members of the classic protocol in a group of the consumer protocol."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import Subscription
from barnabas_kafka.protocol.embedded import pack
from tests.broker.coordinator.group.consumer.scenarios import (
    Actor,
    ClassicActor,
    ConsumerScenario,
    settle,
)

COMMON = {"protocols": ("cooperative-sticky",)}
SUBSCRIBED = pack(Subscription(topics=["t"]), 1)


@pytest.fixture
def scenario() -> ConsumerScenario:
    """A group with a member of the consumer protocol that reads all six partitions of t."""
    scenario = ConsumerScenario({"t": 6}, members_max=4)
    settle(Actor(scenario, "new"))
    return scenario


def joined(scenario: ConsumerScenario, client: str = "old") -> ClassicActor:
    """A classic member that has joined and synced, but waits for what it shall read."""
    old = ClassicActor(scenario, client)
    assert old.join().error_code == ErrorCode.NONE
    assert old.sync() is ErrorCode.NONE
    return old


def test_a_join_is_answered_at_once(scenario: ConsumerScenario) -> None:
    """The answer is at once, names no leader, and its protocol is the first one asked for."""
    answer = ClassicActor(scenario, "old").join()
    assert (answer.error_code, answer.leader, answer.members) == (ErrorCode.NONE, "", [])
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "cooperative-sticky")
    assert answer.generation_id == scenario.consumers.epoch
    assert answer.member_id in scenario.consumers.members


@pytest.mark.parametrize(("version", "two_steps"), [(3, False), (4, True)])
def test_newer_clients_are_given_an_id_first(
    scenario: ConsumerScenario, version: int, two_steps: bool
) -> None:
    """As in classic groups (KIP-394)."""
    asked = scenario.join("old", version=version, metadata=SUBSCRIBED)
    wanted = ErrorCode.MEMBER_ID_REQUIRED if two_steps else ErrorCode.NONE
    assert scenario.error(asked) is wanted


def test_a_static_member_that_comes_back_classic_has_no_expression(
    scenario: ConsumerScenario,
) -> None:
    """It reads what it now names, not what it matched in the consumer protocol."""
    scenario.put_topic("other", 2)
    first = Actor(
        scenario, "first", instance_id="i", subscribed_topic_names=[], subscribed_topic_regex="o.*"
    )
    settle(first)
    assert first.owned == scenario.partitions("other")
    old = ClassicActor(scenario, "old", instance="i")
    for _ in range(3):
        old.beat()
    member = scenario.consumers.members[old.id]
    assert (member.regex, member.topics) == ("", frozenset({"t"}))
    assert not scenario.consumers.target[old.id] & scenario.partitions("other")


def test_a_freed_partition_triggers_a_rejoin(scenario: ConsumerScenario) -> None:
    """Its heartbeats ask it to join again only when there is something for it."""
    old = joined(scenario)
    assert (old.reads, old.beat()) == ([], ErrorCode.NONE)
    (new,) = (each for each in scenario.consumers.members.values() if each.classic is None)
    actor = Actor(scenario, new.id)
    actor.epoch, actor.owned = new.epoch, new.assigned
    actor.beat()
    assert old.beat() is ErrorCode.NONE
    actor.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert (len(old.reads), old.beat()) == (3, ErrorCode.NONE)


def test_a_member_revokes_partitions_assigned_to_others(scenario: ConsumerScenario) -> None:
    """It joins with less, and keeps its generation until then."""
    scenario = ConsumerScenario({"t": 6})
    new = Actor(scenario, "new")
    new.beat()
    old = joined(scenario)
    settle(new, old)
    before = old.generation
    other = Actor(scenario, "other")
    other.beat()
    assert old.join().generation_id == before
    assert old.sync() is ErrorCode.NONE
    assert len(old.reads) == 2
    assert old.join().generation_id > before
    settle(new, old, other)
    assert [len(each.reads) for each in (new, old, other)] == [2, 2, 2]


def test_an_eager_member_gives_everything_up_first() -> None:
    """It says it owns nothing, so that what it has to let go is free at once."""
    scenario = ConsumerScenario({"t": 6})
    new = Actor(scenario, "new")
    new.beat()
    old = ClassicActor(scenario, "old", eager=True)
    settle(new, old)
    assert len(old.reads) == 3
    Actor(scenario, "other").beat()
    old.beat()
    assert len(old.reads) == 2
    assert old.generation == scenario.consumers.epoch


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"metadata": b"\0", **COMMON}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance": "nobody", "member_id": "x", **COMMON}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_invalid_members_are_refused(
    scenario: ConsumerScenario, fields: dict[str, object], code: ErrorCode
) -> None:
    """Others than consumers, those without a protocol in common, unreadable ones, unknown ones."""
    joined(scenario)
    asked = scenario.join("odd", **{"version": 3, "metadata": SUBSCRIBED, **fields})  # type: ignore[arg-type]
    assert scenario.error(asked) is code
    assert len(scenario.consumers.members) == 2


def test_a_full_group_is_full(scenario: ConsumerScenario) -> None:
    """The bound is that of the consumer protocol."""
    for name in "abc":
        joined(scenario, name)
    assert (
        scenario.error(scenario.join("d", metadata=SUBSCRIBED)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    )


def test_requests_of_others_are_refused(scenario: ConsumerScenario) -> None:
    """A wrong generation, a member of the other protocol, somebody unknown."""
    old = joined(scenario)
    assert scenario.heartbeat(old.id, generation=99) is ErrorCode.ILLEGAL_GENERATION
    assert scenario.heartbeat("new", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scenario.heartbeat("x", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scenario.leave(("x", None), (old.id, None)) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    old = joined(scenario)
    for fields in ({"protocol_type": "connect"}, {"protocol_name": "range"}):
        asked = scenario.sync(old.id, generation=old.generation, **fields)
        assert scenario.error(asked) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    joined(scenario, "another")
    assert old.sync() is ErrorCode.REBALANCE_IN_PROGRESS


def test_commits_carry_the_generation(scenario: ConsumerScenario) -> None:
    """In any version of OffsetCommit; a wrong one is told in the words of the classic protocol."""
    old = joined(scenario)
    committed = scenario.commit(1, member=old.id, generation=old.generation)
    assert committed is ErrorCode.NONE
    assert scenario.commit(1, member=old.id, generation=1) is ErrorCode.ILLEGAL_GENERATION
    assert scenario.commit(1, member="new", generation=99) is ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize("stage", ["silent", "does not join", "does not sync"])
def test_members_are_missed(stage: str) -> None:
    """After their own session; and where they do not join or sync in their rebalance timeout."""
    scenario = ConsumerScenario({"t": 6}, session_ms=10**9)
    Actor(scenario, "new").beat()
    old = joined(scenario)
    if stage == "silent":
        scenario.pass_time(9_999)
        assert old.id in scenario.consumers.members
        scenario.pass_time(1)
    else:
        Actor(scenario, "other").beat()
        if stage == "does not sync":
            old.join()
        for _ in range(6):
            scenario.heartbeat(old.id, generation=old.generation)
            scenario.pass_time(5_000)
    assert old.id not in scenario.consumers.members
    assert old.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_are_remembered() -> None:
    """With what they told, how long they may be silent, and what they read."""
    scenario = ConsumerScenario({"t": 6})
    new = Actor(scenario, "new")
    new.beat()
    old = joined(scenario)
    settle(new, old)
    before = scenario.consumers.members[old.id]
    scenario.restart()
    assert scenario.consumers.members[old.id] == before
    assert old.beat() is ErrorCode.NONE
    scenario.pass_time(10_000)
    assert old.id not in scenario.consumers.members


def test_an_administrator_removes_members_of_either_protocol(scenario: ConsumerScenario) -> None:
    """By LeaveGroup; the group ends up empty, and what it committed stays."""
    old = joined(scenario)
    assert scenario.leave(("new", None), (old.id, None)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert scenario.consumers.state_name == "Empty"
