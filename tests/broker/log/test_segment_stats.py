"""What is in a segment, in numbers: counted while it is written, or from the file."""

from pathlib import Path

import pytest

from barnabas_broker.log import segment_stats
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.loader import Checkpointed
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.segment_stats import SegmentStats
from barnabas_broker.log.validator import ProduceRules, validate_produce
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec

TP = TopicPartition("counted", 0)
TEXT = b"the same words over and over " * 40


def opened(directory: Path, *, clean: bool = True, recovery_point: int = 0) -> PartitionLog:
    """The log in `directory`, with segments of about three batches."""
    return PartitionLog.open(
        directory / "counted-0",
        TP,
        LogConfig(segment_bytes=4000),
        Checkpointed(clean=clean, recovery_point=recovery_point),
        now_ms=0,
    )


def append(log: PartitionLog, records: int, codec: Codec = Codec.NONE) -> None:
    """Append one batch as a producer's is appended."""
    batch = build_batch([(1000 + index, None, TEXT, ()) for index in range(records)], codec=codec)
    found = validate_produce(bytearray(batch), rules=ProduceRules(), now_ms=5000)
    log.append_as_leader(found, leader_epoch=0, now_ms=5000)


def tallies(log: PartitionLog) -> list[SegmentStats | None]:
    """The numbers of the log's segments."""
    return [segment.stats for segment in log.segments]


def counted(log: PartitionLog) -> list[SegmentStats]:
    """The same, read from the files."""
    return [segment_stats.count(DataFile.open(segment.file.path)) for segment in log.segments]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_leader_counts_what_is_in_the_file(tmp_path: Path, codec: Codec) -> None:
    """Counting while appending and counting the file come to the same, for every codec."""
    log = opened(tmp_path)
    for records in (1, 2, 1, 2, 2):
        append(log, records, codec)
    append(log, 1)
    assert tallies(log) == counted(log)
    assert sum(each.records for each in counted(log)) == 9
    assert all(each.first_timestamp == 1000 for each in counted(log))
    saved = sum(each.saved_bytes for each in counted(log))
    assert saved == 0 if codec is Codec.NONE else saved > 2000


def test_codecs_are_named() -> None:
    """A segment names all codecs of its batches."""
    mixed = SegmentStats()
    mixed.add(1, codec=Codec.NONE, saved_bytes=0, first_timestamp=7)
    mixed.add(1, codec=Codec.ZSTD, saved_bytes=9, first_timestamp=8)
    assert mixed.codec_names == ["none", "zstd"]
    assert (mixed.batches, mixed.saved_bytes, mixed.first_timestamp) == (2, 9, 7)


def test_a_clean_restart_keeps_the_numbers(tmp_path: Path) -> None:
    """Nothing is counted again after a clean stop."""
    log = opened(tmp_path)
    for _ in range(5):
        append(log, 2, Codec.LZ4)
        append(log, 1)
    before = tallies(log)
    log.close(clean=True, now_ms=0)
    again = opened(tmp_path)
    assert tallies(again) == before
    append(again, 1)
    assert tallies(again) == counted(again)


def test_stats_that_do_not_match_the_segment_are_ignored(tmp_path: Path) -> None:
    """Numbers of a segment of another size, and files of nonsense, are left aside."""
    log = opened(tmp_path)
    for _ in range(6):
        append(log, 1)
    log.close(clean=True, now_ms=0)
    path = tmp_path / "counted-0" / segment_stats.FILE_NAME
    known = segment_stats.decode(path.read_bytes())
    path.write_bytes(
        segment_stats.encode({base: (size + 1, it) for base, (size, it) in known.items()})
    )
    stale = opened(tmp_path)
    assert set(tallies(stale)) == {None}
    assert stale.segments.uncounted == stale.segments[:-1]
    stale.close(clean=False)
    for nonsense in (b"", b"{", b"[]", b'{"version": 1}', b'{"version": 1, "segments": [["x"]]}'):
        path.write_bytes(nonsense)
        assert set(tallies(opened(tmp_path))) == {None}


def test_after_a_crash_only_what_was_flushed_is_believed(tmp_path: Path) -> None:
    """Numbers of segments above the recovery point are counted anew."""
    log = opened(tmp_path)
    for _ in range(9):
        append(log, 1)
    first, second = log.segments[:2]
    log.roll(0)
    log.close(clean=False)
    again = opened(tmp_path, clean=False, recovery_point=second.base_offset)
    assert again.segments[0].stats == first.stats
    assert again.segments[1].stats is None


def test_a_cut_makes_the_numbers_unknown(tmp_path: Path) -> None:
    """After a truncation the segment is counted again rather than guessed."""
    log = opened(tmp_path)
    append(log, 1)
    append(log, 1)
    log.truncate_to(1, now_ms=0)
    assert tallies(log) == [None]
