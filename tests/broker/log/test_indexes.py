"""The sparse indexes: Kafka's bytes on disk, Kafka's answers to look-ups."""

import struct
from pathlib import Path

import pytest

from barnabas_broker.log.indexes import (
    PENDING_LIMIT,
    CorruptIndexError,
    OffsetIndex,
    TimeIndex,
)

BASE = 368769


def offset_index(tmp_path: Path, *, max_bytes: int = 10 << 20) -> OffsetIndex:
    index = OffsetIndex(tmp_path / f"{BASE:020d}.index", BASE, max_bytes=max_bytes)
    index.create()
    return index


def notes_index(tmp_path: Path) -> OffsetIndex:
    """The index the notes draw: message 3 of the segment at 497, message 6 at 1407, 8 at 1686."""
    index = offset_index(tmp_path)
    for nth, position in ((1, 0), (3, 497), (6, 1407), (8, 1686)):
        index.append(BASE + nth, position)
    return index


def test_the_notes_lookup_of_368772(tmp_path: Path) -> None:
    """Offset 368772 is found from the entry (3, 497): the greatest one at or below it."""
    assert notes_index(tmp_path).lookup(368772) == (368772, 497)


def test_the_notes_lookup_of_368776(tmp_path: Path) -> None:
    """Offset 368776 lies between entries 6 and 8: the search begins at entry 6, position 1407."""
    assert notes_index(tmp_path).lookup(368776) == (368775, 1407)


def test_offsets_before_the_first_entry_start_at_the_segment(tmp_path: Path) -> None:
    """Nothing indexed at or below the offset: the walk begins at position 0."""
    assert notes_index(tmp_path).lookup(BASE) == (BASE, 0)
    assert offset_index(tmp_path).lookup(BASE + 100) == (BASE, 0)


def test_offsets_past_the_last_entry_start_there(tmp_path: Path) -> None:
    """The last entry serves everything above it."""
    assert notes_index(tmp_path).lookup(BASE + 10**6) == (BASE + 8, 1686)


def test_batch_positions_can_be_searched_too(tmp_path: Path) -> None:
    """A slice's end is looked for by position."""
    index = notes_index(tmp_path)
    assert index.position_at_most(496) == (0, False)
    assert index.position_at_most(497) == (497, False)
    assert index.position_at_most(1 << 30) == (1686, False)


def test_an_entry_that_knows_its_batch_answers_for_it(tmp_path: Path) -> None:
    """From the first offset of the batch to its last; the file does not say what the first is."""
    index = offset_index(tmp_path)
    index.append(BASE + 3, 497, first=BASE + 2)
    index.append(BASE + 6, 1407)
    assert [index.exact(BASE + relative) for relative in range(8)] == [
        *(None, None),
        *[(497, BASE + 2)] * 2,
        *[None] * 4,
    ]
    index.learn(1407, BASE + 5, BASE + 6)
    index.learn(1500, BASE + 7, BASE + 7)  # Between entries: nothing to remember it by.
    assert [index.exact(BASE + relative) for relative in (4, 5, 6, 7)] == [
        *(None, (1407, BASE + 5), (1407, BASE + 5), None)
    ]
    assert index.position_at_most(2000) == (1407, True)
    index.truncate_to(BASE + 6)
    assert index.exact(BASE + 6) is None
    index.trim()
    again = OffsetIndex(index.path, BASE, max_bytes=10 << 20)
    assert again.exact(BASE + 3) is None


def test_the_file_holds_pairs_of_big_endian_int32(tmp_path: Path) -> None:
    """Relative offset, then position: eight bytes an entry, as Apache Kafka writes them."""
    index = notes_index(tmp_path)
    index.trim()
    expected = struct.pack(">8i", 1, 0, 3, 497, 6, 1407, 8, 1686)
    assert index.path.read_bytes() == expected


def test_the_active_file_is_preallocated_and_trimmed(tmp_path: Path) -> None:
    """Ten mebibytes while active, exactly the entries when rolled or closed."""
    index = notes_index(tmp_path)
    assert index.path.stat().st_size == 10 << 20
    index.write()
    assert index.path.stat().st_size == 10 << 20
    index.trim()
    assert index.path.stat().st_size == 4 * 8


def test_the_size_is_rounded_down_to_whole_entries(tmp_path: Path) -> None:
    """A time entry has 12 bytes, and 10 MiB is not a multiple of that."""
    times = TimeIndex(tmp_path / "0.timeindex", 0, max_bytes=10 << 20)
    times.create()
    assert times.path.stat().st_size == 10485756


def test_entries_are_written_behind_in_blocks(tmp_path: Path) -> None:
    """A few entries stay in memory; a block of them goes to the file on its own."""
    index = offset_index(tmp_path)
    for nth in range(1, PENDING_LIMIT):
        index.append(BASE + nth, nth * 5000)
    assert not any(index.path.read_bytes())
    index.append(BASE + PENDING_LIMIT, PENDING_LIMIT * 5000)
    last = index.path.read_bytes()[(PENDING_LIMIT - 1) * 8 :][:8]
    assert last == struct.pack(">2i", PENDING_LIMIT, PENDING_LIMIT * 5000)


def test_a_trimmed_index_is_loaded_again(tmp_path: Path) -> None:
    """A trimmed file gives the same answers in the next process."""
    notes_index(tmp_path).trim()
    loaded = OffsetIndex(tmp_path / f"{BASE:020d}.index", BASE, max_bytes=10 << 20)
    assert [loaded.entry(n) for n in range(len(loaded))] == [
        (BASE + 1, 0),
        (BASE + 3, 497),
        (BASE + 6, 1407),
        (BASE + 8, 1686),
    ]
    assert loaded.last_offset == BASE + 8


def test_zeros_of_a_preallocated_rest_are_no_entries(tmp_path: Path) -> None:
    """A broker that was killed leaves its index untrimmed."""
    notes_index(tmp_path).write()
    loaded = OffsetIndex(tmp_path / f"{BASE:020d}.index", BASE, max_bytes=10 << 20)
    assert len(loaded) == 4


def test_a_size_between_entries_is_corrupt(tmp_path: Path) -> None:
    """Nine bytes are no sequence of eight-byte entries."""
    path = tmp_path / "0.index"
    path.write_bytes(b"123456789")
    with pytest.raises(CorruptIndexError, match="9 bytes"):
        len(OffsetIndex(path, 0, max_bytes=80))


def test_descending_entries_are_corrupt(tmp_path: Path) -> None:
    """An index that runs backwards cannot be searched."""
    path = tmp_path / "0.index"
    path.write_bytes(struct.pack(">4i", 9, 900, 3, 300))
    with pytest.raises(CorruptIndexError, match="ascending"):
        len(OffsetIndex(path, 0, max_bytes=80))


def test_offsets_must_grow(tmp_path: Path) -> None:
    """Indexing an offset twice is a mistake of the caller."""
    index = notes_index(tmp_path)
    with pytest.raises(ValueError, match="not above"):
        index.append(BASE + 8, 2000)


def test_truncation_drops_entries_at_and_above_the_offset(tmp_path: Path) -> None:
    """In memory and in the file, and the room for new entries stays."""
    index = notes_index(tmp_path)
    index.write()
    index.truncate_to(BASE + 6)
    assert index.last_offset == BASE + 3
    index.append(BASE + 5, 800)
    index.write()
    assert index.path.stat().st_size == 10 << 20
    assert index.path.read_bytes()[:32] == struct.pack(">6i", 1, 0, 3, 497, 5, 800) + bytes(8)


def test_a_full_index_says_so(tmp_path: Path) -> None:
    """The segment is rolled when its index has no room."""
    index = offset_index(tmp_path, max_bytes=20)
    index.append(BASE + 1, 10)
    assert not index.is_full
    assert index.room == 1
    index.append(BASE + 2, 20)
    assert index.is_full
    assert index.room == 0


def test_a_time_index_keeps_a_slot_for_the_roll(tmp_path: Path) -> None:
    """The entry written when a segment is closed always finds room."""
    times = TimeIndex(tmp_path / "0.timeindex", 0, max_bytes=24)
    times.create()
    assert not times.is_full
    assert times.room == 1
    times.maybe_append(5, 1)
    assert times.is_full
    assert times.room == 0


def test_time_lookups_give_the_entry_at_or_before(tmp_path: Path) -> None:
    """Every record up to that entry's offset is old enough to be skipped."""
    times = TimeIndex(tmp_path / "0.timeindex", 100, max_bytes=1200)
    times.create()
    times.maybe_append(1000, 110)
    times.maybe_append(2000, 120)
    assert times.lookup(999) == (-1, 100)
    assert times.lookup(1000) == (1000, 110)
    assert times.lookup(1999) == (1000, 110)
    assert times.lookup(5000) == (2000, 120)


def test_time_entries_only_get_younger(tmp_path: Path) -> None:
    """A timestamp that is no news is left out, as late records do not move the maximum."""
    times = TimeIndex(tmp_path / "0.timeindex", 0, max_bytes=1200)
    times.create()
    times.maybe_append(1000, 10)
    times.maybe_append(1000, 20)
    times.maybe_append(900, 30)
    times.trim()
    assert times.path.read_bytes() == struct.pack(">qi", 1000, 10)


def test_a_time_index_is_loaded_and_truncated(tmp_path: Path) -> None:
    """What is cut from the log is cut from its time index."""
    path = tmp_path / "0.timeindex"
    path.write_bytes(struct.pack(">qiqiqi", 10, 1, 20, 5, 30, 9))
    times = TimeIndex(path, 0, max_bytes=1200)
    times.truncate_to(5)
    assert times.last_entry == (10, 1)
    times.reset()
    assert times.last_entry == (-1, 0)


def test_opening_looks_at_the_ends_alone(tmp_path: Path) -> None:
    """A start with thousands of old segments reads a few bytes of each index."""
    path = tmp_path / "0.index"
    path.write_bytes(struct.pack(">4i", 1, 100, 5, 500))
    assert OffsetIndex(path, 0, max_bytes=80).check(501)
    with pytest.raises(CorruptIndexError, match="past the end"):
        OffsetIndex(path, 0, max_bytes=80).check(500)
    path.write_bytes(struct.pack(">4i", 5, 500, 1, 100))
    with pytest.raises(CorruptIndexError, match="ascending"):
        OffsetIndex(path, 0, max_bytes=80).check(900)
    path.write_bytes(b"")
    assert not OffsetIndex(path, 0, max_bytes=80).check(0)
    times = tmp_path / "0.timeindex"
    times.write_bytes(struct.pack(">qiqi", 10, 1, 20, 5) + bytes(24))
    index = TimeIndex(times, 100, max_bytes=1200)
    assert index.check()
    assert index.last_entry == (20, 105)
    times.write_bytes(struct.pack(">qiqi", 30, 1, 20, 5))
    with pytest.raises(CorruptIndexError, match="ascending"):
        TimeIndex(times, 100, max_bytes=1200).check()
