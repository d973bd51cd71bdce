"""Accounts of memory, and the budget that they are held against."""

from barnabas_broker.coordinator.memory import (
    MEMORY_BYTES_MAX,
    MEMORY_BYTES_MIN,
    SMALL_BYTES,
    Account,
    default_limit,
    has_room,
)

LIMIT = 1 << 20


def test_a_part_counts_in_its_parent_until_it_is_removed() -> None:
    """A group that leaves takes all with it, and brings it along where it comes back."""
    whole = Account()
    part = Account(whole, 5)
    part.add(2)
    assert (part.held, whole.held) == (7, 7)
    part.leave()
    part.add(1)
    assert whole.held == 0
    part.join(whole)
    assert whole.held == 8


def test_the_last_quarter_is_for_small_members() -> None:
    """Large ones cannot shut ordinary consumers out, and whoever needs nothing more is welcome."""
    assert has_room(0, LIMIT * 3 // 4, LIMIT)
    assert not has_room(1, LIMIT * 3 // 4, LIMIT)
    assert has_room(LIMIT - SMALL_BYTES, SMALL_BYTES, LIMIT)
    assert not has_room(LIMIT - SMALL_BYTES + 1, SMALL_BYTES, LIMIT)
    assert has_room(2 * LIMIT, 0, LIMIT)


def test_the_budget_suits_the_machine() -> None:
    """A sixteenth of its memory, within bounds."""
    sizes = [default_limit(size) for size in (1, 1 << 30, 1 << 40)]
    assert sizes == [MEMORY_BYTES_MIN, 1 << 26, MEMORY_BYTES_MAX]
