"""Committed offsets: who may commit, and how long they are kept."""

from typing import Any

import pytest

from barnabas_broker.coordinator.group.commits import transactional_commit_fault
from barnabas_broker.coordinator.group.records import (
    CommittedOffset,
    OffsetRecord,
    PendingOffset,
    TransactionEnd,
)
from barnabas_broker.coordinator.group.results import CoordinatorResult
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.coordinator.group.consumer.scenarios import (
    Actor,
    ClassicActor,
    ConsumerScenario,
    settle,
)
from tests.broker.coordinator.group.scenarios import LIMITS, SESSION_MS, Scenario, subscription

PARTITION = TopicPartition("t", 0)


def sweep(scenario: Scenario) -> None:
    """Look for offsets to forget, as the shell does from time to time."""
    for result in scenario.shard.expire(scenario.now_ms):
        scenario.perform(result)


def keep_alive(scenario: Scenario, member: str, milliseconds: int) -> None:
    """Let time pass with heartbeats."""
    for _ in range(milliseconds // (SESSION_MS // 2)):
        scenario.pass_time(SESSION_MS // 2)
        assert scenario.heartbeat(member) is ErrorCode.NONE


def test_a_consumer_without_a_group_commits() -> None:
    """Under a group's name, as long as nobody is in the group."""
    scenario = Scenario()
    assert scenario.commit(5, metadata="x") is ErrorCode.NONE
    committed = scenario.group.offsets[PARTITION]
    assert (committed.offset, committed.metadata) == (5, "x")
    assert committed.commit_timestamp == scenario.now_ms
    scenario.stable("a")
    assert scenario.commit(6) is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_commit_in_their_generation() -> None:
    """Also while the next one is prepared, but not before they know what they read."""
    scenario = Scenario()
    assert scenario.commit(generation=1, member="x") is ErrorCode.ILLEGAL_GENERATION
    (member,) = scenario.stable("a")
    assert scenario.commit(member=member, generation=1) is ErrorCode.NONE
    assert scenario.commit(member=member, generation=9) is ErrorCode.ILLEGAL_GENERATION
    assert scenario.commit(member="x", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    scenario.enter("b")
    assert scenario.commit(member=member, generation=1) is ErrorCode.NONE
    scenario.join("a", member)
    code = scenario.commit(member=member, generation=2)
    assert code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life() -> None:
    """It begins the session anew, as a heartbeat does."""
    scenario = Scenario()
    (member,) = scenario.stable("a")
    scenario.pass_time(SESSION_MS - 1)
    scenario.commit(member=member, generation=1)
    scenario.pass_time(SESSION_MS - 1)
    assert scenario.state == "Stable"


def test_long_metadata_is_refused() -> None:
    """offset.metadata.max.bytes counts bytes, not characters."""
    scenario = Scenario()
    assert scenario.commit(metadata="é" * 5) is ErrorCode.NONE
    assert scenario.commit(metadata="é" * 6) is ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_a_commit_that_is_not_written_does_not_count(
    failure: ErrorCode, reported: ErrorCode
) -> None:
    """The client is told in words of its own protocol."""
    scenario = Scenario()
    scenario.fail_writes = failure
    assert scenario.commit() is reported
    assert scenario.group.offsets == {}


def test_offsets_without_members_expire_after_their_commit() -> None:
    """And with the last one the group goes, for good."""
    scenario = Scenario()
    scenario.commit()
    scenario.pass_time(LIMITS.retention_ms - 1)
    sweep(scenario)
    assert PARTITION in scenario.group.offsets
    scenario.pass_time(1)
    sweep(scenario)
    assert scenario.shard.groups == {}
    assert scenario.written[-2] == OffsetRecord("team", PARTITION, None)


def test_offsets_of_a_group_expire_when_it_has_been_empty_for_long() -> None:
    """However old they are (KIP-211)."""
    scenario = Scenario()
    (member,) = scenario.stable("a")
    scenario.commit(member=member, generation=1)
    keep_alive(scenario, member, LIMITS.retention_ms)
    scenario.leave((member, None))
    sweep(scenario)
    assert PARTITION in scenario.group.offsets
    scenario.pass_time(LIMITS.retention_ms)
    sweep(scenario)
    assert scenario.shard.groups == {}


def offsets_for_the_next_coordinator(scenario: Scenario) -> dict[str, dict[TopicPartition, int]]:
    """The offsets of each group that the log has."""
    shard = scenario._shard()
    for record in scenario.written:
        shard.replay(record, scenario.now_ms)
    return {
        group.id: {tp: each.offset for tp, each in group.offsets.items()}
        for group in shard.groups.values()
    }


def end_transaction(scenario: Scenario, *, committed: bool) -> None:
    """The marker of producer 1 comes."""
    scenario.perform(
        CoordinatorResult(scenario.now_ms, records=[TransactionEnd(1, committed=committed)])
    )


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("before", [True, False], ids=["after another commit", "the first"])
def test_an_offset_of_an_open_transaction_does_not_expire(*, committed: bool, before: bool) -> None:
    """Nor does what it would replace: the transaction may yet be aborted, or committed."""
    scenario = Scenario()
    if before:
        scenario.commit(5)
    pending = OffsetRecord("team", PARTITION, CommittedOffset(9, scenario.now_ms))
    scenario.perform(CoordinatorResult(scenario.now_ms, records=[PendingOffset(1, pending)]))
    scenario.pass_time(2 * LIMITS.retention_ms)
    sweep(scenario)
    left = {"team": {PARTITION: 5} if before else {}}
    assert offsets_for_the_next_coordinator(scenario) == left
    end_transaction(scenario, committed=committed)
    if committed:
        left = {"team": {PARTITION: 9}}
    assert offsets_for_the_next_coordinator(scenario) == left
    assert {tp: each.offset for tp, each in scenario.group.offsets.items()} == left["team"]
    sweep(scenario)
    assert scenario.shard.groups == {}
    assert offsets_for_the_next_coordinator(scenario) == {}


def test_a_commit_that_meets_an_expiration_is_kept() -> None:
    """Before it, it is not due; after it, it comes behind the tombstone in the log."""
    scenario = Scenario()
    for partition in range(2):
        scenario.commit(5, partition=partition)
    scenario.pass_time(LIMITS.retention_ms)
    scenario.commit(6)
    sweep(scenario)
    assert offsets_for_the_next_coordinator(scenario) == {"team": {PARTITION: 6}}
    scenario.pass_time(LIMITS.retention_ms)
    sweep(scenario)
    scenario.commit(7)
    sweep(scenario)
    assert offsets_for_the_next_coordinator(scenario) == {"team": {PARTITION: 7}}
    assert scenario.group.offsets[PARTITION].offset == 7


def test_an_expiration_that_is_not_written_leaves_the_offsets() -> None:
    """They are looked at again with the next one."""
    scenario = Scenario()
    scenario.commit(5)
    scenario.pass_time(LIMITS.retention_ms)
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    sweep(scenario)
    assert scenario.group.offsets[PARTITION].offset == 5
    scenario.fail_writes = None
    sweep(scenario)
    assert offsets_for_the_next_coordinator(scenario) == {}


def test_a_group_that_is_joined_again_begins_a_new_retention() -> None:
    """With what it reads; the time for which it was empty before does not count."""
    scenario = Scenario()
    (member,) = scenario.stable("a", metadata=subscription("t"))
    scenario.commit(member=member, generation=1)
    for _ in range(3):
        scenario.leave((member, None))
        scenario.pass_time(LIMITS.retention_ms - 1)
        sweep(scenario)
        (member,) = scenario.stable("a", metadata=subscription("t"))
        sweep(scenario)
    assert offsets_for_the_next_coordinator(scenario) == {"team": {PARTITION: 7}}
    scenario.leave((member, None))
    scenario.pass_time(LIMITS.retention_ms)
    sweep(scenario)
    assert offsets_for_the_next_coordinator(scenario) == {}


def test_a_living_group_keeps_what_it_subscribes_to() -> None:
    """Offsets of other topics expire after their commit."""
    scenario = Scenario()
    (member,) = scenario.stable("a", metadata=subscription("t"))
    for topic in ("t", "old"):
        scenario.commit(member=member, generation=1, topic=topic)
    keep_alive(scenario, member, LIMITS.retention_ms)
    sweep(scenario)
    assert list(scenario.group.offsets) == [PARTITION]


def test_offsets_of_unknown_protocols_do_not_expire() -> None:
    """Metadata of other protocols, or that is not understood, is nobody's business."""
    for fields in ({"metadata": b"?"}, {"protocol_type": "connect"}):
        more: dict[str, Any] = dict(fields)
        scenario = Scenario()
        (member,) = scenario.stable("a", **more)
        scenario.commit(member=member, generation=1)
        keep_alive(scenario, member, LIMITS.retention_ms)
        sweep(scenario)
        assert PARTITION in scenario.group.offsets


def test_a_retention_of_its_own() -> None:
    """Clients of versions 2 to 4 say how long an offset is to be kept."""
    scenario = Scenario()
    scenario.commit(retention_time_ms=500)
    scenario.pass_time(500)
    sweep(scenario)
    assert scenario.shard.groups == {}


@pytest.mark.parametrize(
    ("member", "generation", "reported"),
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
    member: str, generation: int, reported: ErrorCode | None
) -> None:
    """In their epoch, of either protocol; one that does not say for whom is taken, as ever."""
    scenario = ConsumerScenario({"t": 2})
    new, old = Actor(scenario, "new"), ClassicActor(scenario, "old")
    settle(new, old)
    ids = {"old": old.id}
    request = TxnOffsetCommitRequest(
        group_id="team", member_id=ids.get(member, member), generation_id=generation
    )
    assert transactional_commit_fault(scenario.group, request) is reported
