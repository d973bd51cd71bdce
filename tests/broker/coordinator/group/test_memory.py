"""The memory of all groups together: what is counted, refused, and given back."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.consumer.stories import ConsumerStory
from tests.broker.coordinator.group.stories import SESSION_MS, TEAM, Story, counted

LIMIT = 1 << 20


def full(**limits: Any) -> Story:
    """A story whose group has a member, and a broker with no room for more than small ones."""
    story = Story(memory_bytes_max=LIMIT, **limits)
    story.stable("a")
    return story


def test_a_member_that_is_too_much_for_the_broker_may_try_again() -> None:
    """It has done nothing wrong, so its client is not told that it is; nothing is kept of it."""
    story = full()
    held = story.shard.account.held
    refused = story.join("b", version=3, metadata=b"m" * LIMIT)
    assert story.error(refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (len(story.group.members), story.state) == (1, "Stable")
    assert story.shard.account.held == held


def test_members_go_on_when_there_is_no_room() -> None:
    """Only who needs more is refused, and stays as it was; a rebalance takes nothing."""
    story = full()
    (first,) = story.group.members
    story.shard.limits = replace(story.limits, memory_bytes_max=1)
    assert story.error(story.join("a", first)) is ErrorCode.NONE
    grown = story.join("a", first, metadata=b"more")
    assert story.error(grown) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(story.group.members) == [first]
    assert story.error(story.join("b")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert story.commit(member=first, generation=story.group.generation) in (
        ErrorCode.NONE,
        ErrorCode.REBALANCE_IN_PROGRESS,
    )


def test_no_group_is_made_without_room() -> None:
    """Neither by a join nor by a commit, which is not lost: it was not acknowledged."""
    story = Story(memory_bytes_max=1)
    assert story.error(story.join("a")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert story.commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (story.shard.groups, story.shard.account.held) == ({}, 0)


def test_a_refused_request_creates_no_group() -> None:
    """A name in a request that is refused costs nothing."""
    story = Story()
    assert story.error(story.join("a", protocols=())) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert story.commit(metadata="x" * 11) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert story.shard.groups == {}
    assert story.error(story.join("a")) is ErrorCode.MEMBER_ID_REQUIRED
    assert list(story.shard.groups) == [TEAM]
    story.pass_time(SESSION_MS)
    assert (story.shard.groups, story.shard.account.held) == ({}, 0)


@pytest.mark.parametrize("size", [1, 1 << 16])
def test_memory_comes_back_when_members_leave(size: int) -> None:
    """What is left is the group itself, which its record keeps."""
    story = Story()
    member = story.answer(story.join("a", version=3, metadata=b"m" * size)).member_id
    story.sync(member, assign={member: b"p" * size})
    assert story.shard.account.held > 2 * size
    assert story.leave((member, None)) == [ErrorCode.NONE]
    assert story.shard.account.held < 4096
    story.shard.resign(story.now_ms)
    assert counted(story.shard) == 0


def test_loading_ignores_the_memory_limit() -> None:
    """A smaller budget, or another broker's groups, keep no partition from loading."""
    story = Story()
    story.stable("a", "b")
    assert story.commit(member=next(iter(story.group.members)), generation=2) is ErrorCode.NONE
    heir = Story(memory_bytes_max=1)
    for record in story.written:
        heir.shard.replay(record, heir.now_ms)
    assert heir.group.offsets == story.group.offsets
    assert list(heir.group.members) == list(story.group.members)
    assert heir.shard.account.held == counted(heir.shard)


def test_members_of_the_consumer_protocol_are_counted_too() -> None:
    """The same budget, and the same error, which their clients try again after as well."""
    story = ConsumerStory({"t": 3})
    story.limits = story.shard.limits = Story(memory_bytes_max=LIMIT).limits
    joins: dict[str, Any] = {"topic_partitions": [], "rebalance_timeout_ms": 1000}
    told = story.beat("a", 0, subscribed_topic_names=["t"], **joins)
    assert told.error_code == ErrorCode.NONE
    many = [f"{number:0200}" for number in range(LIMIT // 200)]
    told = story.beat("b", 0, subscribed_topic_names=many, **joins)
    assert told.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(story.consumers.members) == ["a"]
    story.beat("a", -1)
    assert story.shard.account.held < 4096
