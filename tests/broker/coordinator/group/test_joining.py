"""Who gets into a group, and whether that makes it rebalance."""

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.coordinator.group.scenarios import SESSION_MS, Scenario


def test_a_new_member_is_first_given_its_id() -> None:
    """From version 4 on a member that nobody hears of again leaves nothing behind (KIP-394)."""
    scenario = Scenario()
    first = scenario.answer(scenario.join("c"))
    assert (first.error_code, first.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "c-1")
    assert scenario.state == "Empty"
    second = scenario.answer(scenario.join("c", first.member_id))
    assert (second.error_code, second.generation_id, second.leader) == (0, 1, "c-1")
    assert [member.member_id for member in second.members] == ["c-1"]


@pytest.mark.parametrize("version", range(4))
def test_old_clients_enter_at_once(version: int) -> None:
    """Before version 4 there is one step."""
    scenario = Scenario()
    assert scenario.answer(scenario.join("c", version=version)).member_id == "c-1"


def test_an_unused_member_id_expires() -> None:
    """A rebalance does not wait for it longer than its session would last."""
    scenario = Scenario()
    (first,) = scenario.stable("a")
    scenario.join("b")
    waiting = scenario.join("a", first)
    assert scenario.state == "PreparingRebalance"
    assert scenario.answer(waiting) is None
    scenario.pass_time(SESSION_MS)
    assert scenario.answer(waiting).generation_id == 2


def test_sessions_must_be_within_bounds() -> None:
    """A timeout outside group.min/max.session.timeout.ms is refused."""
    scenario = Scenario()
    for timeout in (5999, 60_001):
        refused = scenario.join("c", session_timeout_ms=timeout)
        assert scenario.error(refused) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert scenario.shard.groups == {}


def test_unknown_members_are_refused() -> None:
    """A member id that was not given out here belongs to nobody."""
    scenario = Scenario()
    assert scenario.error(scenario.join("c", "c-9")) is ErrorCode.UNKNOWN_MEMBER_ID
    scenario.stable("a")
    assert scenario.error(scenario.join("c", "c-9")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_protocols_must_have_something_in_common() -> None:
    """The first member settles the type; a protocol must be known to all."""
    scenario = Scenario()
    assert scenario.error(scenario.join("a", protocols=())) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    scenario.stable("a", protocols=("range", "roundrobin"))
    for fields in ({"protocols": ("sticky",)}, {"protocol_type": "connect"}):
        refused = scenario.join("b", **fields)
        assert scenario.error(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_last_to_come_are_too_many() -> None:
    """group.max.size holds in every state."""
    scenario = Scenario(members_max=2)
    first, second = scenario.stable("a", "b")
    assert scenario.error(scenario.join("c")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    scenario.join("a", first)
    scenario.join("b", second)
    assert scenario.state == "CompletingRebalance"


def test_a_follower_that_joins_again_changes_nothing() -> None:
    """With the same metadata it is told the generation; the leader always rebalances."""
    scenario = Scenario()
    leader, follower = scenario.stable("a", "b")
    again = scenario.answer(scenario.join("b", follower))
    assert (again.generation_id, again.leader, again.members) == (2, leader, [])
    assert scenario.state == "Stable"
    scenario.join("a", leader)
    assert scenario.state == "PreparingRebalance"


def test_changed_metadata_rebalances() -> None:
    """A follower that subscribes to something else has everybody join again."""
    scenario = Scenario()
    _, follower = scenario.stable("a", "b")
    scenario.join("b", follower, metadata=b"other")
    assert scenario.state == "PreparingRebalance"


def test_an_answer_that_was_lost_is_given_again() -> None:
    """In CompletingRebalance the same join means that the client did not hear."""
    scenario = Scenario()
    member, _ = scenario.enter("a")
    again = scenario.answer(scenario.join("a", member))
    assert again.generation_id == 1
    assert len(again.members) == 1


def test_a_static_member_returns_without_a_rebalance() -> None:
    """It gets a new id and its old assignment; the old id is fenced everywhere (KIP-345)."""
    scenario = Scenario()
    scenario.join("a", instance="one")
    scenario.sync("one-1", assign={"one-1": b"mine"})
    back = scenario.answer(scenario.join("a", instance="one"))
    assert (back.error_code, back.member_id, back.generation_id) == (0, "one-2", 1)
    assert back.leader == "one-2"
    assert back.skip_assignment
    assert scenario.state == "Stable"
    assert scenario.answer(scenario.sync("one-2")).assignment == b"mine"
    assert scenario.heartbeat("one-1", instance="one") is ErrorCode.FENCED_INSTANCE_ID
    stale = scenario.join("a", "one-1", instance="one")
    assert scenario.error(stale) is ErrorCode.FENCED_INSTANCE_ID
    assert scenario.heartbeat("one-2", instance="one") is ErrorCode.NONE


def test_an_old_static_leader_does_not_assign_again() -> None:
    """Before version 9 it is told that the leader is the id it had before."""
    scenario = Scenario()
    scenario.join("a", instance="one")
    scenario.sync("one-1")
    back = scenario.answer(scenario.join("a", instance="one", version=8))
    assert (back.member_id, back.leader, back.members) == ("one-2", "one-1", [])
    assert not back.skip_assignment


def test_a_static_member_that_returns_is_written_down() -> None:
    """If that fails it keeps its old id, and may try again."""
    scenario = Scenario()
    scenario.join("a", instance="one")
    scenario.sync("one-1")
    scenario.fail_writes = ErrorCode.NOT_COORDINATOR
    assert scenario.error(scenario.join("a", instance="one")) is ErrorCode.NOT_COORDINATOR
    assert scenario.heartbeat("one-1", instance="one") is ErrorCode.NONE


def test_a_static_member_with_another_choice_rebalances() -> None:
    """The protocol that the members would elect now is not the one they go by."""
    scenario = Scenario()
    scenario.join("a", instance="one", protocols=("range", "sticky"))
    scenario.sync("one-1")
    back = scenario.join("a", instance="one", protocols=("sticky",))
    assert scenario.answer(back).protocol_name == "sticky"
    assert scenario.answer(back).generation_id == 2


def test_a_returning_static_member_fences_its_parked_join() -> None:
    """Two processes with one instance id: the first is told so at once."""
    scenario = Scenario()
    scenario.stable("a")
    parked = scenario.join("s", instance="one")
    scenario.join("s", instance="one")
    assert scenario.error(parked) is ErrorCode.FENCED_INSTANCE_ID


def test_the_metadata_of_all_members_is_bounded() -> None:
    """Whoever would be too much is refused, and the others go on."""
    scenario = Scenario(members_max=10, members_bytes_max=1000)
    first, second = scenario.stable("a", "b")
    scenario.join("a", first, metadata=b"m" * 700)
    assert scenario.error(scenario.join("b", second, metadata=b"m" * 400)) is (
        ErrorCode.GROUP_MAX_SIZE_REACHED
    )
    assert list(scenario.group.members) == [first]
    assert scenario.state == "CompletingRebalance"
    assert scenario.error(scenario.join("c" * 300)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scenario.error(scenario.join("d")) is ErrorCode.MEMBER_ID_REQUIRED


def test_unused_member_ids_are_bounded() -> None:
    """Each is kept for a session timeout, without a member; as many as there may be members."""
    scenario = Scenario(members_max=3)
    reported = [scenario.error(scenario.join("a")) for _ in range(5)]
    assert reported == [ErrorCode.MEMBER_ID_REQUIRED] * 3 + [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
    scenario.pass_time(10_000)
    assert scenario.error(scenario.join("a")) is ErrorCode.MEMBER_ID_REQUIRED
