"""A whole cleaning on real files, against what a reader must find afterwards."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_broker.log import dump
from barnabas_broker.log.cleaner.cleaning import Cleaning
from barnabas_broker.log.cleaner.grouping import Source, groups
from barnabas_broker.log.cleaner.manager import CleanerManager, Resources
from barnabas_broker.log.cleaner.offset_map import ENTRY_BYTES
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.producer_state import Origin
from barnabas_kafka.records.compression import Codec
from tests.broker.log.cleaner.histories import (
    COMPACT,
    PLENTY,
    Write,
    clean,
    headers_of,
    last_values,
    open_compacted,
    records_of,
    survivors,
    write,
)
from tests.broker.log.samples import NOW, marker_of, read_all, validated

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", None])
BATCHES = st.lists(
    st.tuples(
        st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=40)), min_size=1, max_size=4),
        st.sampled_from(list(Codec)),
    ),
    min_size=1,
    max_size=40,
)


def expected(writes: list[Write], clean_to: int) -> list[tuple[int, bytes | None, bytes | None]]:
    """The last record of each key below ``clean_to``, and everything from there on."""
    last = {key: offset for offset, (key, _) in enumerate(writes[:clean_to])}
    return [
        (offset, key, value)
        for offset, (key, value) in enumerate(writes)
        if offset >= clean_to or (key is not None and last[key] == offset)
    ]


@settings(max_examples=40)
@given(batches=BATCHES, slots=st.integers(3, 40))
def test_any_history(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[list[Write], Codec]],
    slots: int,
) -> None:
    """Each key keeps its last record, offsets stay, in as many passes as the memory asks for;
    tombstones stay until their time and then vanish; a restart finds the same.
    """
    directory = tmp_path_factory.mktemp("history")
    config = replace(COMPACT, segment_bytes=300)
    logs, log = open_compacted(directory, config)
    history: list[Write] = []
    for writes, codec in batches:
        write(log, *writes, codec=codec)
        history += writes
    few = replace_resources(slots)
    passes = 0
    while clean(logs, resources=few) is not None:
        passes += 1
        assert passes <= len(history)
    cleaned_to = log.cleaned_to or 0
    assert cleaned_to == (log.active.base_offset if passes else 0)
    found = survivors(log)
    assert found == expected(history, cleaned_to)
    for segment in log.segments:
        rows = list(dump.dump_log(segment.file.path))
        assert all(isinstance(row, dump.BatchRow) and row.valid for row in rows)

    later = NOW + config.delete_retention_ms
    log.cleaned_to = 0
    clean(logs, now_ms=later)
    assert survivors(log) == [one for one in found if one[0] >= cleaned_to or one[2] is not None]
    logs.close(clean=False)
    again_logs, again = open_compacted(directory, config)
    assert again.log_end_offset == len(history)
    assert survivors(again) == [one for one in found if one[0] >= cleaned_to or one[2] is not None]
    again_logs.close(clean=False)


def replace_resources(slots: int) -> Resources:
    return replace(PLENTY, map_bytes=slots * ENTRY_BYTES)


def fill(log: PartitionLog, count: int, *, keys: int = 3) -> None:
    for number in range(count):
        write(log, (b"k%d" % (number % keys), b"v%d" % number), now_ms=NOW + number)


def test_readers_find_everything_that_is_left(tmp_path: Path) -> None:
    """From any offset, over gaps and empty segments, before and after a restart."""
    logs, log = open_compacted(tmp_path)
    fill(log, 60)
    clean(logs)
    left = [one.offset for one in survivors(log)]
    assert read_all(log) == left
    for offset in range(60):
        part = log.read(offset, 10_000, upper_bound=60)
        assert part.length
    assert len(log.segments) < 20
    logs.close(clean=True, broker_epoch=1, now_ms=NOW)
    _, again = open_compacted(tmp_path)
    assert read_all(again) == left


def test_a_record_is_not_replaced_by_an_undecided_one(tmp_path: Path) -> None:
    """Not even by one in the segment in which the first open transaction begins: it may be
    aborted, and then the committed record is the last of its key.
    """
    logs, log = open_compacted(tmp_path, replace(COMPACT, segment_bytes=2000))
    fill(log, 20)
    write(log, (b"k1", b"undecided"), producer=(7, 0, 0), transactional=True)
    for number in range(100):
        write(log, (b"other", b"v%d" % number))
    assert log.segments[1].base_offset > log.last_stable_offset
    assert clean(logs) is None, "the segment that holds it is left alone"
    log.append_as_leader(
        validated(marker_of(7, 0, commit=False)),
        leader_epoch=3,
        now_ms=NOW,
        origin=Origin.COORDINATOR,
    )
    log.advance_high_watermark(log.log_end_offset)
    assert clean(logs) is not None
    assert last_values(log)[b"k1"] == b"v19"
    logs.close(clean=False)


def test_indexes_age_and_epochs(tmp_path: Path) -> None:
    """The new segments are indexed like any other, as old as the originals, of the same epoch."""
    logs, log = open_compacted(tmp_path, replace(COMPACT, segment_bytes=2000))
    fill(log, 120, keys=40)
    aged = log.segments[1].file.path
    os.utime(aged, (5000, 5000))
    replaced = [segment.base_offset for segment in log.segments[:-1]]
    clean(logs)
    first = log.segments[0]
    assert first.aborted.entries == []
    for number in range(len(first.offsets)):
        offset, position = first.offsets.entry(number)
        found = first.find(offset)
        assert found is not None
        assert (found.last_offset, found.position) == (offset, position)
    for segment in log.segments[:-1]:
        newest = max(
            (one.timestamp for one in records_of(log) if segment.base_offset <= one.offset),
            default=-1,
        )
        assert segment.max_timestamp <= newest
        if segment.size:
            assert segment.max_timestamp == NOW + segment.offset_of_max_timestamp
            assert not segment.offsets.check(segment.size) or segment.times.check()
    assert {header.leader_epoch for header in headers_of(log)} == {3}
    found_at = log.offset_for_timestamp(NOW + 100)
    assert found_at is not None
    assert found_at.offset == 100
    assert replaced[1] in [segment.base_offset for segment in log.segments]
    assert int(aged.stat().st_mtime) == 5000
    assert log.segments[0].file.modified_ms() != 5_000_000


def test_small_segments_become_one(tmp_path: Path) -> None:
    """Cleaning again, now that little is left of each, puts neighbours together."""
    logs, log = open_compacted(tmp_path)
    fill(log, 60)
    clean(logs)
    before = len(log.segments)
    fill(log, 20)
    clean(logs)
    assert len(log.segments) < before
    assert last_values(log) == {b"k0": b"v18", b"k1": b"v19", b"k2": b"v17"}
    assert {path.suffix for path in log.directory.iterdir()} <= {
        "", ".log", ".index", ".timeindex", ".snapshot",
    }  # fmt: skip


def test_undecided_records_are_left_alone(tmp_path: Path) -> None:
    """Nothing at or above the last stable offset or the high watermark is read or moved."""
    logs, log = open_compacted(tmp_path)
    fill(log, 20)
    open_at = write(log, (b"k0", b"open"), producer=(7, 0, 0), transactional=True, now_ms=NOW + 20)
    fill(log, 20)
    result = clean(logs)
    assert result is not None
    assert result.clean_to == open_at
    above = [one.offset for one in survivors(log) if one.offset >= open_at]
    assert above == list(range(open_at, 41))
    assert [one.offset for one in survivors(log) if one.offset < open_at] == [17, 18, 19]


def test_transactions(tmp_path: Path) -> None:
    """Aborted records go, the index still names the transaction while its marker stays."""
    logs, log = open_compacted(tmp_path)
    write(log, (b"a", b"committed"), producer=(7, 0, 0), transactional=True)
    end(log, 7, commit=True)
    write(log, (b"a", b"aborted"), producer=(7, 0, 1), transactional=True)
    end(log, 7, commit=False)
    fill(log, 20)
    log.roll(NOW)
    before = log.aborted_transactions(0, 100)
    assert len(before) == 1
    clean(logs)
    assert {one.value for one in survivors(log) if one.key == b"a"} == {b"committed"}
    assert log.aborted_transactions(0, 100) == before
    assert [one.base_offset for one in headers_of(log) if one.is_control] == [1, 3]

    fill(log, 20)
    write(log, (b"k0", b"later"), producer=(7, 0, 2))
    for _ in range(2):  # the first takes the header that was the producer's last batch
        fill(log, 20)
        log.roll(NOW)
        clean(logs)
    horizons = {one.base_offset: one.delete_horizon_ms for one in headers_of(log) if one.is_control}
    assert horizons == {1: None, 3: NOW + COMPACT.delete_retention_ms}
    assert log.aborted_transactions(0, 100) == []
    logs.close(clean=True, broker_epoch=1, now_ms=NOW)
    _, again = open_compacted(tmp_path)
    assert again.producers.producers[7].epoch == 0


def end(log: PartitionLog, producer: int, *, commit: bool) -> None:
    marker = validated(marker_of(producer, 0, commit=commit))
    log.append_as_leader(marker, leader_epoch=3, now_ms=NOW, origin=Origin.COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)


def test_a_producer_goes_on_where_it_was(tmp_path: Path) -> None:
    """Its last sequence survives the loss of its records, even when the state is read anew."""
    logs, log = open_compacted(tmp_path)
    write(log, (b"k0", b"first"), producer=(7, 0, 0))
    write(log, (b"k0", b"second"), producer=(7, 0, 1))
    fill(log, 30)
    clean(logs)
    assert b"second" not in {one.value for one in survivors(log)}
    log.close(clean=False)
    for path in log.directory.glob("*.snapshot"):
        path.unlink()
    logs.close(clean=False)
    _, again = open_compacted(tmp_path)
    assert again.producers.producers[7].last_sequence == 1


def test_the_rate_is_kept(tmp_path: Path) -> None:
    """log.cleaner.io.max.bytes.per.second covers what both passes read and what is written."""
    logs, log = open_compacted(tmp_path)
    fill(log, 40)
    task = CleanerManager(logs).pick(NOW, replace(PLENTY, bytes_per_second=1000.0))
    assert task is not None
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    result = Cleaning(task.job, lambda _: None, sleep=sleep, clock=lambda: now[0]).run()
    moved = task.filth.cleanable_bytes + result.bytes_read + result.bytes_kept
    assert now[0] == pytest.approx(moved / 1000)


def test_retention_and_compaction_together(tmp_path: Path) -> None:
    """With both policies old segments go whole, and what is left holds the last values in it."""
    config = replace(COMPACT, delete=True, retention_bytes=300)
    logs, log = open_compacted(tmp_path, config)
    fill(log, 60)
    clean(logs)
    start = log.segments[-1].base_offset
    log.delete_old_segments(NOW + 60)
    assert log.log_start_offset > 0
    assert log.log_start_offset <= start
    assert set(last_values(log)) <= {b"k0", b"k1", b"k2"}
    fill(log, 30)
    assert clean(logs) is not None
    assert last_values(log) == {b"k0": b"v27", b"k1": b"v28", b"k2": b"v29"}


def test_times_beyond_a_header_without_records(tmp_path: Path) -> None:
    """A header that stayed promises a time no record has any more: the search goes on behind it."""
    logs, log = open_compacted(tmp_path)
    write(log, (b"k0", b"gone"), producer=(7, 0, 0), now_ms=NOW + 500)
    fill(log, 40)
    write(log, (b"k9", b"young"), now_ms=NOW + 600)
    clean(logs)
    assert headers_of(log)[0].record_count == 0
    found = log.offset_for_timestamp(NOW + 450)
    assert found is not None
    assert (found.offset, found.timestamp) == (41, NOW + 600)


def test_the_cleaner_checkpoint_is_lowered_before_a_truncated_log_grows(tmp_path: Path) -> None:
    """A start after a crash must not take for clean what was appended behind a truncation."""
    logs, log = open_compacted(tmp_path)
    fill(log, 40)
    clean(logs)
    cleaned_to = log.cleaned_to or 0
    assert logs.truncate(log.tp, cleaned_to - 3, now_ms=NOW)
    text = (tmp_path / "cleaner-offset-checkpoint").read_text()
    assert int(text.split()[-1]) <= cleaned_to - 3


def bases(*segments: Source, size: int = 100, index: int = 100, end: int = 1000) -> list[list[int]]:
    found = groups(segments, segment_bytes=size, index_bytes=index, upper_bound=end)
    return [[one.base_offset for one in group] for group in found]


def test_files_bound_a_group() -> None:
    """Neighbours are taken together while log and indexes stay within one segment's limits."""
    small = [Source(base, 40, 8, 12) for base in (0, 10, 20, 30, 40)]
    assert bases(*small) == [[0, 10], [20, 30], [40]]
    assert bases(*small, size=1000, index=24) == [[0, 10], [20, 30], [40]]
    assert bases(*small, size=1000, index=8) == [[0], [10], [20], [30], [40]]
    assert bases(*small, size=10) == [[0], [10], [20], [30], [40]], "one that is too large is alone"


def test_offsets_bound_a_group() -> None:
    """An index tells offsets in 31 bits; an empty segment has none to tell."""
    far = 1 << 31
    segments = [Source(0, 1, 0, 0), Source(10, 1, 0, 0)]
    assert bases(*segments, end=far) == [[0, 10]]
    assert bases(*segments, end=far + 1) == [[0], [10]]
    assert bases(Source(0, 0, 0, 0), Source(far, 1, 0, 0), end=far + 9) == [[0], [far]]
    assert bases(Source(0, 1, 0, 0), Source(far, 0, 0, 0), end=far + 9) == [[0, far]]
    assert bases() == []
