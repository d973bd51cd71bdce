"""The groups of a partition: replay, deletion, and the way back from records."""

import pytest

from barnabas_broker.coordinator.group.shard import Shard
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.broker.coordinator.group.scenarios import (
    LIMITS,
    SESSION_MS,
    TEAM,
    Scenario,
    subscription,
)


def delete(scenario: Scenario) -> ErrorCode:
    """DeleteGroups."""
    scenario.asked += 1
    scenario.perform(scenario.shard.delete(TEAM, scenario.asked, scenario.now_ms))
    return scenario.error(scenario.asked)


def test_a_replayed_shard_continues_the_group() -> None:
    """Another shard that replays the records has the generation, the assignments, the offsets."""
    scenario = Scenario()
    scenario.join("a", instance="one", metadata=b"m")
    scenario.sync("one-1", assign={"one-1": b"mine"})
    scenario.commit(8, member="one-1", generation=1)
    heir = Scenario()
    for record in scenario.written:
        heir.shard.replay(record, heir.now_ms)
    assert list(heir.shard.loaded(heir.now_ms)) == []
    assert (heir.state, heir.group.generation, heir.group.leader_id) == ("Stable", 1, "one-1")
    assert heir.group.members["one-1"].assignment == b"mine"
    assert heir.group.members["one-1"].metadata("range") == b"m"
    assert heir.group.offsets == scenario.group.offsets
    assert heir.heartbeat("one-1", instance="one") is ErrorCode.NONE
    heir.pass_time(SESSION_MS)
    assert heir.state == "PreparingRebalance" or heir.state == "Empty"


def test_too_many_members_after_loading_rebalance() -> None:
    """group.max.size may have been lowered meanwhile; the last to join again are refused."""
    scenario = Scenario()
    first, second = scenario.stable("a", "b")
    heir = Scenario(members_max=1)
    for record in scenario.written:
        heir.shard.replay(record, heir.now_ms)
    for result in heir.shard.loaded(heir.now_ms):
        heir.perform(result)
    assert heir.state == "PreparingRebalance"
    heir.join("a", first)
    assert heir.error(heir.join("b", second)) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_empty_groups_are_deleted() -> None:
    """Offsets and group end with tombstones."""
    scenario = Scenario()
    assert delete(scenario) is ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = scenario.stable("a")
    scenario.commit(member=member, generation=1)
    assert delete(scenario) is ErrorCode.NON_EMPTY_GROUP
    scenario.leave((member, None))
    assert delete(scenario) is ErrorCode.NONE
    assert scenario.shard.groups == {}
    heir = Shard(LIMITS, new_id=str, steady_ms=int)
    for record in scenario.written:
        heir.replay(record, 0)
    assert heir.groups == {}


def test_single_offsets_are_deleted() -> None:
    """But not of topics that members subscribe to (KIP-496)."""
    scenario = Scenario()
    partition = TopicPartition("t", 0)

    def attempt() -> tuple[int, list[int]]:
        scenario.asked += 1
        scenario.perform(
            scenario.shard.delete_offsets(TEAM, [partition], scenario.asked, scenario.now_ms)
        )
        answer = scenario.answer(scenario.asked)
        return answer.error_code, [
            each.error_code for topic in answer.topics for each in topic.partitions
        ]

    assert attempt() == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    (member,) = scenario.stable("a", metadata=subscription("t"))
    scenario.commit(member=member, generation=1)
    assert attempt() == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    scenario.leave((member, None))
    assert attempt() == (0, [0])
    assert TEAM not in scenario.shard.groups, "a group without members goes with its last offset"
    scenario.stable("c", protocol_type="connect")
    assert attempt() == (ErrorCode.NON_EMPTY_GROUP, [])


def test_offsets_of_deleted_topics_go_with_them() -> None:
    """A topic of the same name begins anew."""
    scenario = Scenario()
    scenario.commit(topic="gone")
    scenario.commit(topic="stays")
    for result in scenario.shard.forget_topics({"gone"}, scenario.now_ms):
        scenario.perform(result)
    assert list(scenario.group.offsets) == [TopicPartition("stays", 0)]
    for result in scenario.shard.forget_topics({"stays"}, scenario.now_ms):
        scenario.perform(result)
    assert TEAM not in scenario.shard.groups, "a group without members goes with its last topic"


def test_a_group_with_members_outlives_the_topics_of_its_offsets() -> None:
    """It may commit again."""
    scenario = Scenario()
    (member,) = scenario.stable("a")
    scenario.commit(topic="gone", member=member, generation=1)
    for result in scenario.shard.forget_topics({"gone"}, scenario.now_ms):
        scenario.perform(result)
    assert (scenario.state, dict(scenario.group.offsets)) == ("Stable", {})


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_wall_clock_changes_expire_no_member(jump_ms: int) -> None:
    """Sessions and rebalances take as long as they shall; only what is written tells the hour."""
    scenario = Scenario()
    one, _ = scenario.stable("one", "two")
    scenario.now_ms += jump_ms
    scenario.pass_time(SESSION_MS - 1)
    assert scenario.state == "Stable"
    assert scenario.heartbeat(one) is ErrorCode.NONE
    assert scenario.commit(member=one, generation=scenario.group.generation) is ErrorCode.NONE
    (committed,) = scenario.group.offsets.values()
    assert committed.commit_timestamp == scenario.now_ms
    scenario.pass_time(1)
    assert (scenario.state, len(scenario.group.members)) == ("PreparingRebalance", 1)
    scenario.now_ms += jump_ms
    scenario.pass_time(SESSION_MS - 2)
    assert list(scenario.group.members) == [one]
    scenario.pass_time(1)
    assert scenario.state == "Empty"
