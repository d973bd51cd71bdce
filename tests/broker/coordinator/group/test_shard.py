"""The groups of a partition: replay, deletion, and the way back from records."""

import pytest

from barnabas_broker.coordinator.group.shard import Shard
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.broker.coordinator.group.stories import LIMITS, SESSION_MS, TEAM, Story, subscription


def delete(story: Story) -> ErrorCode:
    """DeleteGroups."""
    story.asked += 1
    story.perform(story.shard.delete(TEAM, story.asked, story.now_ms))
    return story.error(story.asked)


def test_a_replayed_shard_continues_the_group() -> None:
    """Another shard that replays the records has the generation, the assignments, the offsets."""
    story = Story()
    story.join("a", instance="one", metadata=b"m")
    story.sync("one-1", assign={"one-1": b"mine"})
    story.commit(8, member="one-1", generation=1)
    heir = Story()
    for record in story.written:
        heir.shard.replay(record, heir.now_ms)
    assert list(heir.shard.loaded(heir.now_ms)) == []
    assert (heir.state, heir.group.generation, heir.group.leader_id) == ("Stable", 1, "one-1")
    assert heir.group.members["one-1"].assignment == b"mine"
    assert heir.group.members["one-1"].metadata("range") == b"m"
    assert heir.group.offsets == story.group.offsets
    assert heir.heartbeat("one-1", instance="one") is ErrorCode.NONE
    heir.pass_time(SESSION_MS)
    assert heir.state == "PreparingRebalance" or heir.state == "Empty"


def test_too_many_members_after_loading_rebalance() -> None:
    """group.max.size may have been lowered meanwhile; the last to join again are refused."""
    story = Story()
    first, second = story.stable("a", "b")
    heir = Story(members_max=1)
    for record in story.written:
        heir.shard.replay(record, heir.now_ms)
    for result in heir.shard.loaded(heir.now_ms):
        heir.perform(result)
    assert heir.state == "PreparingRebalance"
    heir.join("a", first)
    assert heir.error(heir.join("b", second)) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_empty_groups_are_deleted() -> None:
    """Offsets and group end with tombstones."""
    story = Story()
    assert delete(story) is ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = story.stable("a")
    story.commit(member=member, generation=1)
    assert delete(story) is ErrorCode.NON_EMPTY_GROUP
    story.leave((member, None))
    assert delete(story) is ErrorCode.NONE
    assert story.shard.groups == {}
    heir = Shard(LIMITS, new_id=str, steady_ms=int)
    for record in story.written:
        heir.replay(record, 0)
    assert heir.groups == {}


def test_single_offsets_are_deleted() -> None:
    """But not of topics that members subscribe to (KIP-496)."""
    story = Story()
    partition = TopicPartition("t", 0)

    def attempt() -> tuple[int, list[int]]:
        story.asked += 1
        story.perform(story.shard.delete_offsets(TEAM, [partition], story.asked, story.now_ms))
        answer = story.answer(story.asked)
        return answer.error_code, [
            each.error_code for topic in answer.topics for each in topic.partitions
        ]

    assert attempt() == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    (member,) = story.stable("a", metadata=subscription("t"))
    story.commit(member=member, generation=1)
    assert attempt() == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    story.leave((member, None))
    assert attempt() == (0, [0])
    assert TEAM not in story.shard.groups, "a group without members goes with its last offset"
    story.stable("c", protocol_type="connect")
    assert attempt() == (ErrorCode.NON_EMPTY_GROUP, [])


def test_offsets_of_deleted_topics_go_with_them() -> None:
    """A topic of the same name begins anew."""
    story = Story()
    story.commit(topic="gone")
    story.commit(topic="stays")
    for result in story.shard.forget_topics({"gone"}, story.now_ms):
        story.perform(result)
    assert list(story.group.offsets) == [TopicPartition("stays", 0)]
    for result in story.shard.forget_topics({"stays"}, story.now_ms):
        story.perform(result)
    assert TEAM not in story.shard.groups, "a group without members goes with its last topic"


def test_a_group_with_members_outlives_the_topics_of_its_offsets() -> None:
    """It may commit again."""
    story = Story()
    (member,) = story.stable("a")
    story.commit(topic="gone", member=member, generation=1)
    for result in story.shard.forget_topics({"gone"}, story.now_ms):
        story.perform(result)
    assert (story.state, dict(story.group.offsets)) == ("Stable", {})


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_wall_clock_changes_expire_no_member(jump_ms: int) -> None:
    """Sessions and rebalances take as long as they shall; only what is written tells the hour."""
    story = Story()
    one, _ = story.stable("one", "two")
    story.now_ms += jump_ms
    story.pass_time(SESSION_MS - 1)
    assert story.state == "Stable"
    assert story.heartbeat(one) is ErrorCode.NONE
    assert story.commit(member=one, generation=story.group.generation) is ErrorCode.NONE
    (committed,) = story.group.offsets.values()
    assert committed.commit_timestamp == story.now_ms
    story.pass_time(1)
    assert (story.state, len(story.group.members)) == ("PreparingRebalance", 1)
    story.now_ms += jump_ms
    story.pass_time(SESSION_MS - 2)
    assert list(story.group.members) == [one]
    story.pass_time(1)
    assert story.state == "Empty"
