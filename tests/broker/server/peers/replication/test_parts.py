"""In how many requests a leader is asked about many partitions."""

import pytest

from barnabas_broker.server.peers.replication.parts import Outcome, Parts
from barnabas_kafka.ids import TopicPartition

ASKED = {TopicPartition("t", number): number for number in range(11)}


def found(bad: set[int]) -> set[int]:
    """Who is set apart where requests about these fail, within six rounds."""
    parts, asked, apart = Parts(), dict(ASKED), set[int]()
    for _ in range(6):
        failed, passed = [], 0
        for part in parts.split(asked):
            if bad & set(part.values()):
                failed.append(part)
            else:
                passed += 1
        for tp in parts.judge(failed, passed=passed):
            apart.add(asked.pop(tp))
        if not failed:
            break
    return apart


def test_usually_there_is_one_part() -> None:
    """Whose names are not even sorted."""
    assert Parts().split(ASKED)[0] is ASKED


def test_failing_partitions_are_isolated() -> None:
    """In a few rounds, one or several; all others stay together."""
    assert found({3}) == {3}
    assert found({0, 10}) == {0, 10}
    assert found(set(range(1, 11))) == set(range(1, 11))


def test_no_partition_is_isolated_when_all_fail() -> None:
    """It is the leader's trouble."""
    assert found(set(range(11))) == set()


def test_parts_have_all() -> None:
    """However many they are."""
    parts = Parts()
    for _ in range(6):
        whole = [number for part in parts.split(ASKED) for number in part.values()]
        assert whole == list(range(11))
        parts.judge(parts.split(ASKED), passed=0)


def test_a_round_in_which_nothing_passed_has_failed() -> None:
    """Whatever was asked; where other questions passed, it is the partition's own trouble."""
    only = list(ASKED)[:1]
    outcome = Outcome(Parts())
    outcome.failed(only, ValueError("first"))
    outcome.failed(only, ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        outcome.judge()
    outcome.passed += 1
    assert outcome.judge() == only * 2
