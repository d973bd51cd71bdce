"""The keys of a cleaning pass, with their last offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.log.cleaner.offset_map import ENTRY_BYTES, OffsetMap


@given(st.lists(st.tuples(st.binary(max_size=4), st.integers(0, 1 << 62)), max_size=60))
def test_it_is_a_dictionary(writes: list[tuple[bytes, int]]) -> None:
    """Whatever is put, every key has the offset put last, and no other key has any."""
    offsets = OffsetMap(1 << 20, load_factor=0.9, expected=len(writes))
    model: dict[bytes, int] = {}
    for key, offset in writes:
        offsets.put(key, offset)
        model[key] = offset
    assert {key: offsets.get(key) for key in model} == model
    assert offsets.get(b"a key of five or more") == -1
    assert offsets.size == len(model)


def test_every_slot_can_be_used() -> None:
    """Probing finds the last free slot, and one key more is an error, not a loop."""
    offsets = OffsetMap(100 * ENTRY_BYTES, load_factor=1.0, expected=1000)
    for number in range(offsets.capacity):
        offsets.put(b"%d" % number, number)
    assert offsets.is_full
    assert offsets.utilization == 1.0
    assert [offsets.get(b"%d" % number) for number in range(offsets.size)] == list(
        range(offsets.size)
    )
    with pytest.raises(ValueError, match="full"):
        offsets.put(b"one more", 1)
    offsets.put(b"0", 500)
    assert offsets.get(b"0") == 500
    assert offsets.get(b"one more") == -1


def test_memory_is_what_was_allowed_or_less() -> None:
    """A small dirty part needs no large map, and a large one is bounded by the setting."""
    assert OffsetMap(1 << 30, load_factor=0.9, expected=10).capacity <= 13
    bounded = OffsetMap(2400, load_factor=0.9, expected=10**9)
    assert bounded.capacity == int(97 * 0.9)


def test_how_far_the_log_was_read() -> None:
    """Batches without keys count, and looking back changes nothing."""
    offsets = OffsetMap(1 << 10, load_factor=0.9, expected=10)
    assert offsets.latest_offset == -1
    offsets.put(b"k", 5)
    assert offsets.latest_offset == 5
    offsets.reached(9)
    offsets.reached(7)
    assert offsets.latest_offset == 9
