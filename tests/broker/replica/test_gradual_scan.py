"""All of many things are visited in a period, however often somebody asks which are due."""

import pytest

from barnabas_broker.replica.gradual_scan import GradualScan


@pytest.mark.parametrize("step_ms", [1, 7, 10, 99])
def test_each_is_visited_in_a_period(step_ms: int) -> None:
    """A few at a time, and none twice before all others."""
    things = list(range(100))
    scan: GradualScan[int] = GradualScan(1_000, 0)
    seen: list[int] = []
    for now_ms in range(step_ms, 3_000, step_ms):
        due = scan.due(things, now_ms)
        assert len(due) <= 1 + step_ms // 10
        seen += due
    assert set(seen) == set(things)
    assert len(set(seen[:100])) == 100


def test_after_a_period_without_a_call_all_are_due() -> None:
    """And nothing before the first moment has passed."""
    scan: GradualScan[int] = GradualScan(1_000, 0)
    assert scan.due([1, 2, 3], 0) == []
    assert scan.due([1, 2, 3], 5_000) == [1, 2, 3]
    assert scan.due([1, 2, 3], 5_001) == []
    assert scan.due([], 9_000) == []


def test_added_items_are_visited_in_the_next_round() -> None:
    """What has gone may be named once more; the caller knows."""
    scan: GradualScan[int] = GradualScan(10, 0)
    assert scan.due([1, 2], 5) == [1]
    assert scan.due([3, 4], 10) == [2]
    assert scan.due([3, 4], 15) == [3]
