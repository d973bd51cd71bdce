"""Commits without objects are decided and remembered as those with."""

import pytest

from barnabas_broker.coordinator.group import prompt_commits
from barnabas_broker.coordinator.group.records import CommittedOffset, PendingOffset, TransactionEnd
from barnabas_broker.coordinator.group.records import OffsetRecord as Written
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.group_values import GroupCommit
from tests.broker.coordinator.group.consumer.scenarios import Actor, ConsumerScenario, settle
from tests.broker.coordinator.group.scenarios import TEAM, Scenario

PARTITION = TopicPartition("t", 0)


def asked(*, member: str = "", generation: int = -1, metadata: str = "") -> GroupCommit:
    """A commit of one offset, as values."""
    offset = (0, 7, -1, metadata, metadata.encode())
    return (TEAM, TEAM.encode(), generation, member, None, [("t", b"t", [offset])])


def agreed(
    scenario: Scenario, *, member: str = "", generation: int = -1, metadata: str = ""
) -> bool:
    """Whether a commit is taken, at once and in a turn."""
    commit = asked(member=member, generation=generation, metadata=metadata)
    taker = prompt_commits.taker(scenario.shard, commit, 9)
    code = scenario.commit(7, member=member, generation=generation, metadata=metadata)
    assert (code is ErrorCode.NONE) == (taker is not None)
    return taker is not None


def test_the_group_takes_at_once_what_it_takes_in_a_turn() -> None:
    """In every state, of members, strangers and consumers that assign partitions themselves."""
    scenario = Scenario()
    assert prompt_commits.taker(scenario.shard, asked(), 9) is None  # A group is made in a turn.
    assert scenario.commit() is ErrorCode.NONE
    assert agreed(scenario)
    (member,) = scenario.stable("a")
    for metadata in ("", "x" * 10, "é" * 5):
        assert agreed(scenario, member=member, generation=1, metadata=metadata)
    for metadata in ("x" * 11, "é" * 6):
        assert not agreed(scenario, member=member, generation=1, metadata=metadata)
    for stranger, generation in (("", -1), ("", 1), ("x", 1), (member, 2), (member, -1)):
        assert not agreed(scenario, member=stranger, generation=generation)
    scenario.enter("b")
    assert scenario.state == "PreparingRebalance"
    assert agreed(scenario, member=member, generation=1)
    scenario.join("a", member)
    assert scenario.state == "CompletingRebalance"
    assert not agreed(scenario, member=member, generation=2)


@pytest.mark.parametrize(("version", "taken"), [(8, False), (9, True)])
def test_members_of_the_consumer_protocol_commit_in_their_epoch(
    version: int, *, taken: bool
) -> None:
    """As of the version that can tell them about epochs."""
    scenario = ConsumerScenario({"t": 1})
    actor = Actor(scenario, "a")
    settle(actor)
    commit = asked(member=actor.id, generation=actor.epoch)
    assert (prompt_commits.taker(scenario.shard, commit, version) is not None) is taken
    stale = asked(member=actor.id, generation=actor.epoch + 1)
    assert prompt_commits.taker(scenario.shard, stale, version) is None


def test_a_prompt_commit_equals_its_replay() -> None:
    """The newest offset counts, and more than one that is pending in a transaction."""
    scenarios = [Scenario(), Scenario()]
    pending = Written(TEAM, PARTITION, CommittedOffset(offset=3, commit_timestamp=1))
    for scenario in scenarios:
        scenario.shard.replay(PendingOffset(1, pending), scenario.now_ms)
    in_turn, at_once = scenarios
    assert in_turn.commit(7, metadata="m") is ErrorCode.NONE
    prompt_commits.take(at_once.group, asked(metadata="m")[5], at_once.now_ms)
    for scenario in scenarios:
        scenario.shard.replay(TransactionEnd(1, committed=True), scenario.now_ms)
    assert at_once.group.offsets == in_turn.group.offsets
    assert at_once.group.offsets[PARTITION].offset == 7


def test_a_group_that_is_not_known_takes_nothing_at_once() -> None:
    """A turn makes it, where it may."""
    scenario = Scenario()
    scenario.stable("a")
    other = ("other", b"other", *asked()[2:])
    assert prompt_commits.taker(scenario.shard, other, 9) is None
