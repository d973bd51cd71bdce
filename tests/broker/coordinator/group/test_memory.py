"""The memory of all groups together: what is counted, refused, and given back."""

from dataclasses import replace
from typing import Any

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.consumer.scenarios import ConsumerScenario
from tests.broker.coordinator.group.scenarios import SESSION_MS, TEAM, Scenario, counted

LIMIT = 1 << 20


def full(**limits: Any) -> Scenario:
    """A scenario whose group has a member, and a broker with no room for more than small ones."""
    scenario = Scenario(memory_bytes_max=LIMIT, **limits)
    scenario.stable("a")
    return scenario


def test_a_member_that_is_too_much_for_the_broker_may_try_again() -> None:
    """It has done nothing wrong, so its client is not told that it is; nothing is kept of it."""
    scenario = full()
    held = scenario.shard.account.held
    refused = scenario.join("b", version=3, metadata=b"m" * LIMIT)
    assert scenario.error(refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (len(scenario.group.members), scenario.state) == (1, "Stable")
    assert scenario.shard.account.held == held


def test_members_go_on_when_there_is_no_room() -> None:
    """Only who needs more is refused, and stays as it was; a rebalance takes nothing."""
    scenario = full()
    (first,) = scenario.group.members
    scenario.shard.limits = replace(scenario.limits, memory_bytes_max=1)
    assert scenario.error(scenario.join("a", first)) is ErrorCode.NONE
    grown = scenario.join("a", first, metadata=b"more")
    assert scenario.error(grown) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(scenario.group.members) == [first]
    assert scenario.error(scenario.join("b")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scenario.commit(member=first, generation=scenario.group.generation) in (
        ErrorCode.NONE,
        ErrorCode.REBALANCE_IN_PROGRESS,
    )


def test_no_group_is_made_without_room() -> None:
    """Neither by a join nor by a commit, which is not lost: it was not acknowledged."""
    scenario = Scenario(memory_bytes_max=1)
    assert scenario.error(scenario.join("a")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scenario.commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (scenario.shard.groups, scenario.shard.account.held) == ({}, 0)


def test_a_refused_request_creates_no_group() -> None:
    """A name in a request that is refused costs nothing."""
    scenario = Scenario()
    assert scenario.error(scenario.join("a", protocols=())) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scenario.commit(metadata="x" * 11) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert scenario.shard.groups == {}
    assert scenario.error(scenario.join("a")) is ErrorCode.MEMBER_ID_REQUIRED
    assert list(scenario.shard.groups) == [TEAM]
    scenario.pass_time(SESSION_MS)
    assert (scenario.shard.groups, scenario.shard.account.held) == ({}, 0)


@pytest.mark.parametrize("size", [1, 1 << 16])
def test_memory_comes_back_when_members_leave(size: int) -> None:
    """What is left is the group itself, which its record keeps."""
    scenario = Scenario()
    member = scenario.answer(scenario.join("a", version=3, metadata=b"m" * size)).member_id
    scenario.sync(member, assign={member: b"p" * size})
    assert scenario.shard.account.held > 2 * size
    assert scenario.leave((member, None)) == [ErrorCode.NONE]
    assert scenario.shard.account.held < 4096
    scenario.shard.resign(scenario.now_ms)
    assert counted(scenario.shard) == 0


def test_loading_ignores_the_memory_limit() -> None:
    """A smaller budget, or another broker's groups, keep no partition from loading."""
    scenario = Scenario()
    scenario.stable("a", "b")
    assert (
        scenario.commit(member=next(iter(scenario.group.members)), generation=2) is ErrorCode.NONE
    )
    heir = Scenario(memory_bytes_max=1)
    for record in scenario.written:
        heir.shard.replay(record, heir.now_ms)
    assert heir.group.offsets == scenario.group.offsets
    assert list(heir.group.members) == list(scenario.group.members)
    assert heir.shard.account.held == counted(heir.shard)


def test_members_of_the_consumer_protocol_are_counted_too() -> None:
    """The same budget, and the same error, which their clients try again after as well."""
    scenario = ConsumerScenario({"t": 3})
    scenario.limits = scenario.shard.limits = Scenario(memory_bytes_max=LIMIT).limits
    joins: dict[str, Any] = {"topic_partitions": [], "rebalance_timeout_ms": 1000}
    response = scenario.beat("a", 0, subscribed_topic_names=["t"], **joins)
    assert response.error_code == ErrorCode.NONE
    many = [f"{number:0200}" for number in range(LIMIT // 200)]
    response = scenario.beat("b", 0, subscribed_topic_names=many, **joins)
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(scenario.consumers.members) == ["a"]
    scenario.beat("a", -1)
    assert scenario.shard.account.held < 4096
