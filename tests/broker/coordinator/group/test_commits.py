"""Committed offsets: who may commit, and how long they are kept."""

from typing import Any

import pytest

from barnabas_broker.coordinator.group.commits import transactional_commit_fault
from barnabas_broker.coordinator.group.records import OffsetRecord
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.coordinator.group.consumer.stories import (
    Actor,
    ClassicActor,
    ConsumerStory,
    settle,
)
from tests.broker.coordinator.group.stories import LIMITS, SESSION_MS, Story, subscription

PARTITION = TopicPartition("t", 0)


def sweep(story: Story) -> None:
    """Look for offsets to forget, as the shell does from time to time."""
    for result in story.shard.expire(story.now_ms):
        story.perform(result)


def keep_alive(story: Story, member: str, milliseconds: int) -> None:
    """Let time pass with heartbeats."""
    for _ in range(milliseconds // (SESSION_MS // 2)):
        story.pass_time(SESSION_MS // 2)
        assert story.heartbeat(member) is ErrorCode.NONE


def test_a_consumer_without_a_group_commits() -> None:
    """Under a group's name, as long as nobody is in the group."""
    story = Story()
    assert story.commit(5, metadata="x") is ErrorCode.NONE
    committed = story.group.offsets[PARTITION]
    assert (committed.offset, committed.metadata) == (5, "x")
    assert committed.commit_timestamp == story.now_ms
    story.stable("a")
    assert story.commit(6) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_commit_in_their_generation() -> None:
    """Also while the next one is prepared, but not before they know what they read."""
    story = Story()
    assert story.commit(generation=1, member="x") is ErrorCode.ILLEGAL_GENERATION
    (member,) = story.stable("a")
    assert story.commit(member=member, generation=1) is ErrorCode.NONE
    assert story.commit(member=member, generation=9) is ErrorCode.ILLEGAL_GENERATION
    assert story.commit(member="x", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    story.enter("b")
    assert story.commit(member=member, generation=1) is ErrorCode.NONE
    story.join("a", member)
    code = story.commit(member=member, generation=2)
    assert code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life() -> None:
    """It begins the session anew, as a heartbeat does."""
    story = Story()
    (member,) = story.stable("a")
    story.pass_time(SESSION_MS - 1)
    story.commit(member=member, generation=1)
    story.pass_time(SESSION_MS - 1)
    assert story.state == "Stable"


def test_long_metadata_is_refused() -> None:
    """offset.metadata.max.bytes counts bytes, not characters."""
    story = Story()
    assert story.commit(metadata="é" * 5) is ErrorCode.NONE
    assert story.commit(metadata="é" * 6) is ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_commit_that_is_not_written_does_not_count(failure: ErrorCode, told: ErrorCode) -> None:
    """The client is told in words of its own protocol."""
    story = Story()
    story.fail_writes = failure
    assert story.commit() is told
    assert story.group.offsets == {}


def test_offsets_without_members_expire_after_their_commit() -> None:
    """And with the last one the group goes, for good."""
    story = Story()
    story.commit()
    story.pass_time(LIMITS.retention_ms - 1)
    sweep(story)
    assert PARTITION in story.group.offsets
    story.pass_time(1)
    sweep(story)
    assert story.shard.groups == {}
    assert story.written[-2] == OffsetRecord("team", PARTITION, None)


def test_offsets_of_a_group_expire_when_it_has_been_empty_for_long() -> None:
    """However old they are (KIP-211)."""
    story = Story()
    (member,) = story.stable("a")
    story.commit(member=member, generation=1)
    keep_alive(story, member, LIMITS.retention_ms)
    story.leave((member, None))
    sweep(story)
    assert PARTITION in story.group.offsets
    story.pass_time(LIMITS.retention_ms)
    sweep(story)
    assert story.shard.groups == {}


def test_a_living_group_keeps_what_it_subscribes_to() -> None:
    """Offsets of other topics expire after their commit."""
    story = Story()
    (member,) = story.stable("a", metadata=subscription("t"))
    for topic in ("t", "old"):
        story.commit(member=member, generation=1, topic=topic)
    keep_alive(story, member, LIMITS.retention_ms)
    sweep(story)
    assert list(story.group.offsets) == [PARTITION]


def test_offsets_of_unknown_protocols_do_not_expire() -> None:
    """Metadata of other protocols, or that is not understood, is nobody's business."""
    for fields in ({"metadata": b"?"}, {"protocol_type": "connect"}):
        more: dict[str, Any] = dict(fields)
        story = Story()
        (member,) = story.stable("a", **more)
        story.commit(member=member, generation=1)
        keep_alive(story, member, LIMITS.retention_ms)
        sweep(story)
        assert PARTITION in story.group.offsets


def test_a_retention_of_its_own() -> None:
    """Clients of versions 2 to 4 say how long an offset is to be kept."""
    story = Story()
    story.commit(retention_time_ms=500)
    story.pass_time(500)
    sweep(story)
    assert story.shard.groups == {}


@pytest.mark.parametrize(
    ("member", "generation", "told"),
    [
        ("new", 2, None),
        ("new", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("old", 2, None),
        ("old", 1, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("new", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("", -1, None),
    ],
)
def test_transactions_commit_for_members_of_the_consumer_protocol(
    member: str, generation: int, told: ErrorCode | None
) -> None:
    """In their epoch, of either protocol; one that does not say for whom is taken, as ever."""
    story = ConsumerStory({"t": 2})
    new, old = Actor(story, "new"), ClassicActor(story, "old")
    settle(new, old)
    ids = {"old": old.id}
    request = TxnOffsetCommitRequest(
        group_id="team", member_id=ids.get(member, member), generation_id=generation
    )
    assert transactional_commit_fault(story.group, request) is told
