"""One segment: the notes' worked look-ups on real files, and the exact memory of its tail."""

import struct
from pathlib import Path

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.segment import TAIL_LIMIT, Segment
from barnabas_kafka.records import batch as record_batches
from tests.broker.log.samples import NOW, batch_of

BASE = 368769


def notes_segment(tmp_path: Path) -> Segment:
    """The notes' segment: ten records from 368769 on, indexed sparsely.

    The third record begins at byte 497, as drawn: the two before it have 245 and 252 bytes.
    Its index is written as the notes give it, with Kafka's zero-based relative offsets.
    """
    # Two length fields take a second byte each once the value is longer than 63 bytes.
    empty = len(batch_of(size=0)) + 2
    sizes = [245, 252, 300, 305, 305, 140, 139, 200, 200, 200]
    data = b"".join(
        batch_of(size=size - empty, offset=BASE + number) for number, size in enumerate(sizes)
    )
    for suffix, content in (
        (".log", data),
        (".index", struct.pack(">6i", 2, 497, 5, 497 + 300 + 305 + 305, 7, 1686)),
        (".timeindex", b""),
    ):
        (tmp_path / f"{BASE:020d}{suffix}").write_bytes(content)
    return Segment.open(tmp_path, BASE, LogConfig(), NOW)


def test_the_notes_segment_lies_as_drawn(tmp_path: Path) -> None:
    """Positions 497, 1407 and 1686 are where batches begin."""
    segment = notes_segment(tmp_path)
    starts = {batch.base_offset: batch.position for batch in segment.batches_from(BASE)}
    assert starts[BASE + 2] == 497
    assert starts[BASE + 5] == 1407
    assert starts[BASE + 7] == 1686


def test_the_notes_search_for_368772(tmp_path: Path) -> None:
    """From the index entry at 497, then one batch on: the fourth record of the segment."""
    segment = notes_segment(tmp_path)
    assert segment.offsets.lookup(368772) == (368771, 497)
    found = segment.find(368772)
    assert found is not None
    assert (found.base_offset, found.position) == (368772, 497 + 300)


def test_the_notes_search_for_368776(tmp_path: Path) -> None:
    """The eighth record is indexed itself, at 1686."""
    segment = notes_segment(tmp_path)
    assert segment.offsets.lookup(368776) == (368776, 1686)
    found = segment.find(368776)
    assert found is not None
    assert (found.base_offset, found.position) == (368776, 1686)
    record = record_batches.records(segment.file.read(found.position, found.size))[0]
    assert record.offset == 368776


def test_the_notes_search_between_entries(tmp_path: Path) -> None:
    """Offset 368775 lies behind entry 5: the walk begins at 1407 and ends one batch later."""
    segment = notes_segment(tmp_path)
    assert segment.offsets.lookup(368775) == (368774, 1407)
    found = segment.find(368775)
    assert found is not None
    assert found.base_offset == 368775


def appended_segment(tmp_path: Path, count: int, *, interval: int = 4096) -> Segment:
    segment = Segment.create(tmp_path, 0, LogConfig(index_interval_bytes=interval), NOW)
    for number in range(count):
        data = batch_of(2, offset=number * 2, timestamp=NOW + number)
        segment.append(data, [(len(data), number * 2 + 1, NOW + number + 1)])
    return segment


def test_an_entry_is_made_every_interval(tmp_path: Path) -> None:
    """Before the first batch that follows more than index.interval.bytes of others."""
    segment = appended_segment(tmp_path, 200, interval=1000)
    positions = [segment.offsets.entry(number)[1] for number in range(len(segment.offsets))]
    gaps = {after - before for before, after in zip([0, *positions], positions, strict=False)}
    size = len(batch_of(2))
    assert gaps == {(1000 // size + 1) * size}


def test_the_tail_is_known_exactly(tmp_path: Path) -> None:
    """A reader at the end costs no read, and gets what the file would say."""
    segment = appended_segment(tmp_path, TAIL_LIMIT * 2)
    for offset in range(0, TAIL_LIMIT * 4, 5):
        found = segment.find(offset)
        assert found is not None
        assert segment.locate(offset) == (found.position, found.base_offset)
    assert segment.locate(TAIL_LIMIT * 4) is None
    assert segment.position_of(TAIL_LIMIT * 4) == segment.size


@pytest.mark.parametrize("interval", [0, 1000])
def test_every_offset_is_located_where_the_file_has_it(tmp_path: Path, interval: int) -> None:
    """By the tail, by the index, by the file; also when the index is only what its file says."""
    appended = appended_segment(tmp_path, TAIL_LIMIT * 2, interval=interval)
    appended.seal()
    reopened = Segment.open(tmp_path, 0, LogConfig(), NOW)
    for segment in (appended, reopened, reopened):  # The last has learned from the walk before.
        for offset in range(TAIL_LIMIT * 4):
            found = segment.find(offset)
            assert found is not None
            assert segment.locate(offset) == (found.position, found.base_offset)


@pytest.mark.parametrize("interval", [0, 1000])
def test_consecutive_reads_of_old_records_use_cached_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval: int
) -> None:
    """Far behind the tail, each slice begins where the one before ended: memory knows both."""
    segment = appended_segment(tmp_path, TAIL_LIMIT * 8, interval=interval)
    size, walked, boundaries = len(batch_of(2)), 0, {0}
    while walked < TAIL_LIMIT * 6 * size:
        end = segment.boundary_at_most(walked, walked + 8000)
        assert walked < end <= walked + 8000
        assert end % size == 0
        boundaries.add(walked := end)
    boundaries.discard(0)
    monkeypatch.setattr(type(segment.file), "read", None)
    for boundary in boundaries:
        first = boundary // size * 2
        assert segment.locate(first) == (boundary, first)
        assert segment.boundary_at_most(boundary, boundary + 8000) > boundary


def test_the_greatest_timestamp_is_kept_with_its_batch(tmp_path: Path) -> None:
    """Late records do not move it."""
    segment = Segment.create(tmp_path, 0, LogConfig(), NOW)
    for number, timestamp in enumerate((NOW, NOW + 9, NOW + 5)):
        data = batch_of(offset=number, timestamp=timestamp)
        segment.append(data, [(len(data), number, timestamp)])
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (NOW + 9, 1)
    segment.truncate_to(1, NOW)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (NOW, 0)


def test_without_timestamps_the_file_gives_the_age(tmp_path: Path) -> None:
    """Records of format 0 have none: the last write counts."""
    segment = Segment.create(tmp_path, 0, LogConfig(), NOW)
    assert segment.largest_timestamp == segment.file.modified_ms()


def test_waiting_counts_from_creation_without_timestamps(tmp_path: Path) -> None:
    """segment.ms by the broker's clock."""
    segment = Segment.create(tmp_path, 0, LogConfig(), NOW)
    assert segment.waited_ms(NOW + 500, -1) == 500


@pytest.mark.parametrize(("offset", "fits"), [(0, True), (2**31 - 1, True), (2**31, False)])
def test_relative_offsets_have_31_bits(tmp_path: Path, offset: int, fits: bool) -> None:
    """Index entries cannot say more."""
    assert Segment.create(tmp_path, 0, LogConfig(), NOW).fits(offset) is fits
