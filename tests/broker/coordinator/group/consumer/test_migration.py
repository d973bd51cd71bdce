"""Groups that change their protocol while members read."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_broker.coordinator.group.records import GroupRecord, OffsetRecord
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.consumer_protocol import (
    Subscription,
    TopicPartitions,
    read_assignment,
    write_assignment,
)
from barnabas_kafka.protocol.embedded import pack
from tests.broker.coordinator.group.consumer.scenarios import (
    Actor,
    ClassicActor,
    ConsumerScenario,
    settle,
)
from tests.broker.coordinator.group.rebalances import Classic, Modern, RebalanceScenario

V1 = pack(Subscription(), 1)


def assigned(*partitions: int) -> bytes:
    return write_assignment([TopicPartitions(topic="t", partitions=list(partitions))], metadata=V1)


def reported(records: Sequence[object]) -> list[str]:
    """Records in a line each: kind, whose it is, and whether it ends that."""
    lines = []
    for record in records:
        if isinstance(record, ConsumerRecord):
            end = " ends" if record.value is None else ""
            lines.append(f"{record.kind.name} {record.part}".strip() + end)
        elif isinstance(record, GroupRecord):
            lines.append("classic" + (" ends" if record.metadata is None else ""))
        else:
            assert isinstance(record, OffsetRecord)
            lines.append("offset")
    return lines


def classic_pair(
    scenario: ConsumerScenario, *, static: bool = False
) -> tuple[ClassicActor, ClassicActor]:
    """Two members of a stable classic group with t's six partitions, the first of which leads."""
    one, two = (
        ClassicActor(scenario, each, instance=each if static else None) for each in ("one", "two")
    )
    one.join()
    one.sync(**{one.id: assigned(0, 1, 2, 3, 4, 5)})
    two.join()
    one.join()
    two.hear()
    one.sync(**{one.id: assigned(0, 1, 2), two.id: assigned(3, 4, 5)})
    two.sync()
    assert (one.reads, two.reads, scenario.state) == ([0, 1, 2], [3, 4, 5], "Stable")
    return one, two


def test_up_and_down_again_member_by_member() -> None:
    """Everybody reads on all the time; the offsets stay; both ends are as if nothing had been."""
    scenario = ConsumerScenario({"t": 6})
    one, two = classic_pair(scenario)
    assert scenario.commit(9, member=one.id, generation=one.generation) is ErrorCode.NONE
    new = Actor(scenario, "new")
    assert new.beat() is ErrorCode.NONE
    assert scenario.group.kind == "consumer"
    settle(one, two, new)
    assert sorted(map(len, (one.reads, two.reads, new.reads))) == [2, 2, 2]
    assert scenario.consumers.state_name == "Stable"
    one.leave()
    other = Actor(scenario, "other")
    two.leave()
    settle(new, other)
    assert (len(new.reads), len(other.reads)) == (3, 3)
    back = ClassicActor(scenario, "back")
    settle(back, new, other)
    assert [len(each.reads) for each in (back, new, other)] == [2, 2, 2]
    new.leave()
    settle(back, other)
    other.leave()
    assert scenario.group.kind == "classic"
    assert scenario.state == "PreparingRebalance"
    assert back.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert back.leads
    assert len(scenario.group.offsets) == 1
    scenario.restart()
    assert (scenario.group.kind, list(scenario.group.members)) == ("classic", [back.id])
    assert len(scenario.group.offsets) == 1


def test_records_of_an_upgrade() -> None:
    """The classic group ends; its members are written as they are; then the newcomer joins."""
    scenario = ConsumerScenario({"t": 6})
    one, two = classic_pair(scenario)
    before = len(scenario.written)
    Actor(scenario, "new").beat()
    assert reported(scenario.written[before:]) == [
        "classic ends",
        f"MEMBER {one.id}",
        f"MEMBER {two.id}",
        "TOPICS",
        "GROUP",
        f"TARGET {one.id}",
        f"TARGET {two.id}",
        "TARGET_EPOCH",
        f"CURRENT {one.id}",
        f"CURRENT {two.id}",
        "MEMBER new",
        "GROUP",
        *sorted(f"TARGET {each}" for each in (one.id, two.id, "new")),
        "TARGET_EPOCH",
        "CURRENT new",
    ]
    scenario.restart()
    member = scenario.consumers.members[one.id]
    assert member.classic is not None
    assert (member.classic.protocol, member.classic.session_timeout_ms) == (
        "cooperative-sticky",
        10_000,
    )
    assert (member.epoch, sorted(number for _, number in member.assigned)) == (2, [0, 1, 2])


def test_unassigned_partitions_are_assigned_after_an_upgrade() -> None:
    """Also where the newcomer takes a place, and wants what the one before it wanted."""
    scenario = ConsumerScenario({"t": 6})
    one, _ = classic_pair(scenario, static=True)
    scenario.put_topic("t", 7)
    new = Actor(scenario, "new", instance_id="two")
    settle(new, one)
    assert new.owned | one.owned == scenario.partitions("t")


def test_an_upgrade_gives_nothing_to_two() -> None:
    """Where nobody was told, members say what they had; that may be somebody else's by now."""
    scenario = ConsumerScenario({"t": 6})
    one, two = classic_pair(scenario)
    two.owned |= one.owned
    one.join()
    two.join()
    ClassicActor(scenario, "three").join()
    assert (scenario.state, scenario.group.members[one.id].assignment) == (
        "PreparingRebalance",
        b"",
    )
    Actor(scenario, "new").beat()
    held = {each: member.held for each, member in scenario.consumers.members.items()}
    assert (len(held[one.id]), len(held[two.id])) == (3, 3)
    assert not held[one.id] & held[two.id]


def test_records_of_a_downgrade() -> None:
    """Everything of the consumer protocol ends, in Kafka's order; then the classic group."""
    scenario = ConsumerScenario({"t": 6})
    one, two = classic_pair(scenario)
    new = Actor(scenario, "new")
    settle(new, one, two)
    before = len(scenario.written)
    new.leave()
    ids = [one.id, two.id, "new"]
    written = scenario.written[before:]
    assert reported(written) == [
        *(f"CURRENT {each} ends" for each in ids),
        *(f"TARGET {each} ends" for each in ids),
        "TARGET_EPOCH ends",
        *(f"MEMBER {each} ends" for each in ids),
        "TOPICS ends",
        "GROUP ends",
        "classic",
    ]
    last = written[-1]
    assert isinstance(last, GroupRecord)
    assert last.metadata is not None
    assert (last.metadata.protocol, last.metadata.generation) == ("cooperative-sticky", 3)
    shares = [
        read_assignment(each.assignment).assigned_partitions for each in last.metadata.members
    ]
    assert [sum(len(each.partitions) for each in share) for share in shares] == [2, 2]
    assert {each.session_timeout for each in last.metadata.members} == {10_000}


def test_waiting_members_get_rebalance_in_progress() -> None:
    """One that waits for the end of a rebalance hears of the next one; nothing is lost."""
    scenario = ConsumerScenario({"t": 6})
    one, _ = classic_pair(scenario)
    late = ClassicActor(scenario, "late")
    late.join()
    parked = scenario.asked
    assert scenario.answer(parked) is None
    new = Actor(scenario, "new")
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    assert new.beat() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scenario.answer(parked) is None
    assert (scenario.group.kind, scenario.state) == ("classic", "PreparingRebalance")
    scenario.fail_writes = None
    assert new.beat() is ErrorCode.NONE
    assert scenario.error(parked) is ErrorCode.REBALANCE_IN_PROGRESS
    assert late.id in scenario.consumers.members
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("limits", "fields"),
    [
        ({"upgrades": False}, {}),
        ({"members_max": 1}, {}),
        ({}, {"protocol_type": "connect"}),
    ],
)
def test_some_groups_stay_classic(limits: dict[str, object], fields: dict[str, Any]) -> None:
    """By the policy, for want of room, or because their members are no consumers."""
    scenario = ConsumerScenario({"t": 6}, **limits)
    one = ClassicActor(scenario, "one", **fields)
    two = ClassicActor(scenario, "two", **fields)
    one.join()
    two.join()
    assert Actor(scenario, "new").beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert scenario.group.kind == "classic"


def test_a_group_whose_members_cannot_be_read_stays_classic() -> None:
    """A consumer's metadata that is none."""
    scenario = ConsumerScenario({"t": 6})
    scenario.stable("odd", metadata=b"\0\1\0")
    assert Actor(scenario, "new").beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert scenario.state == "Stable"


def test_without_downgrades_the_group_stays_what_it_is() -> None:
    """Classic members go on in it, alone."""
    scenario = ConsumerScenario({"t": 6}, downgrades=False)
    one, two = classic_pair(scenario)
    new = Actor(scenario, "new")
    settle(new, one, two)
    new.leave()
    settle(one, two)
    assert scenario.group.kind == "consumer"
    assert [len(one.reads), len(two.reads)] == [3, 3]


def test_a_member_that_crashes_downgrades_too() -> None:
    """It is missed after its session; where the write fails, it is missed again later."""
    scenario = ConsumerScenario({"t": 6})
    one = ClassicActor(scenario, "one", session_timeout_ms=60_000)
    one.join()
    one.sync(**{one.id: assigned(0, 1, 2, 3, 4, 5)})
    new = Actor(scenario, "new")
    settle(new, one)
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    scenario.pass_time(45_000)
    assert scenario.group.kind == "consumer"
    scenario.fail_writes = None
    one.beat()
    scenario.pass_time(45_000)
    assert scenario.group.kind == "classic"
    one.join()
    one.sync(**{one.id: assigned(0, 1, 2, 3, 4, 5)})
    assert (scenario.state, one.reads) == ("Stable", [0, 1, 2, 3, 4, 5])


def test_a_static_member_takes_its_place_in_the_other_protocol() -> None:
    """Up and down, without anybody else noticing: it has what it had."""
    scenario = ConsumerScenario({"t": 6})
    one, two = classic_pair(scenario, static=True)
    new = Actor(scenario, "new-two", instance_id="two")
    assert new.beat() is ErrorCode.NONE
    assert (new.reads, new.epoch) == ([3, 4, 5], scenario.consumers.epoch)
    assert two.beat() is ErrorCode.FENCED_INSTANCE_ID
    settle(one, new)
    assert (one.reads, new.reads) == ([0, 1, 2], [3, 4, 5])
    again = ClassicActor(scenario, "two", instance="two")
    again.join()
    assert scenario.group.kind == "classic"
    assert again.sync() is ErrorCode.NONE
    assert (scenario.state, again.reads) == ("Stable", [3, 4, 5])
    assert one.beat() is ErrorCode.NONE
    kinds = [each for each in reported(scenario.written) if each.startswith(("MEMBER", "CURRENT"))]
    assert kinds.count(f"MEMBER {again.id} ends") == 1
    scenario.restart()
    assert scenario.group.static == {"one": one.id, "two": again.id}
    assert Kind.GROUP.name not in reported(scenario.written)[-1]


SEEDS = range(120)


def test_no_partition_has_two_readers_while_they_change_their_protocol() -> None:
    """Readers of both protocols come, leave and are killed at random, and topics grow.

    Checked whenever nobody has anything to say; in the end everything is read.
    """
    for seed in SEEDS:
        chance = random.Random(seed)
        rebalance = RebalanceScenario("mixed", t=chance.randint(1, 6))
        for number in range(12):
            _something_happens(rebalance, chance, f"r{number}")
            for _ in range(chance.randint(0, 8)):
                rebalance.pass_seconds(1)
                _check_readers(rebalance, seed)
        rebalance.pass_seconds(60)
        _check_readers(rebalance, seed)
        readers = [each for each in rebalance.cast.values() if each.is_up]
        if readers:
            read = sorted(number for each in readers for _, number in each.reads)
            assert read == list(range(len(rebalance.scenario.partitions("t")))), (
                seed,
                rebalance.transcript,
            )


def _something_happens(rebalance: RebalanceScenario, chance: random.Random, name: str) -> None:
    up = [each for each, reader in rebalance.cast.items() if reader.is_up]
    choice = chance.random()
    if choice < 0.15 and up:
        rebalance.kill(chance.choice(up))
    elif choice < 0.4 and up:
        rebalance.stop(chance.choice(up))
    elif choice < 0.5:
        rebalance.scenario.put_topic("t", len(rebalance.scenario.partitions("t")) + 1)
        rebalance.settle()
    elif chance.random() < 0.5:
        rebalance.enter(Classic(rebalance, name, "t", assignor="cooperative-sticky"))
    else:
        rebalance.enter(Modern(rebalance, name, "t"))


def _check_readers(rebalance: RebalanceScenario, seed: int) -> None:
    read = [part for each in rebalance.cast.values() if each.is_up for part in each.reads]
    assert len(read) == len(set(read)), (seed, rebalance.transcript)
