"""A log's files over its life: segments roll, are deleted and truncated; flush and failure."""

import errno
import os
from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.health import Finding, StorageError
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import ErrorCode, KafkaError
from tests.broker.log.disk import Disk, using
from tests.broker.log.samples import (
    NOW,
    SMALL,
    TOPIC_ID,
    TP,
    append,
    bases,
    batch_of,
    fill,
    open_log,
    read_all,
    refused,
)

# --- roll --------------------------------------------------------------------------------------


def test_segments_roll_when_they_are_full(tmp_path: Path) -> None:
    """A batch that does not fit begins the next segment; batches are never split."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    assert bases(log) == [0, 4, 8]
    assert all(segment.size <= 400 for segment in log.segments)
    assert read_all(log) == list(range(9))


def test_segments_roll_by_the_records_clock(tmp_path: Path) -> None:
    """segment.ms counts from the first record's timestamp to the new one's."""
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    for timestamp in (NOW, NOW + 1000, NOW + 1001):
        append(log, batch_of(timestamp=timestamp))
    assert bases(log) == [0, 2]


def test_jitter_rolls_segments_earlier(tmp_path: Path) -> None:
    """By less than segment.jitter.ms, and the same for the same segment each time."""
    config = LogConfig(segment_ms=1000, segment_jitter_ms=600)
    jitter = config.roll_jitter_ms("orders-3", 0)
    assert 0 < jitter < 600
    log = open_log(tmp_path, config)
    for timestamp in (NOW, NOW + 1000 - jitter, NOW + 1001 - jitter):
        append(log, batch_of(timestamp=timestamp))
    assert bases(log) == [0, 2]


def test_segments_roll_when_their_index_is_full(tmp_path: Path) -> None:
    """A segment cannot be searched past the end of its index."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=1, segment_index_bytes=36))
    fill(log, 8)
    assert bases(log) == [0, 3, 6]


def test_segments_roll_before_offsets_overflow(tmp_path: Path) -> None:
    """Index entries hold 31 bits of offset relative to the base."""
    log = open_log(tmp_path)
    append(log, batch_of())
    far = 2**31
    log.append_as_follower(batch_of(offset=far, leader_epoch=0), now_ms=NOW)
    assert bases(log) == [0, 1]
    assert log.log_end_offset == far + 1


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("compact", [True, False])
def test_a_gap_that_no_segment_spans_is_copied(
    tmp_path: Path, compact: bool, before: int, clean: bool
) -> None:
    """Compaction has left nothing of billions of offsets: the next segment begins behind them."""
    config = LogConfig(index_interval_bytes=1, compact=compact, delete=not compact)
    log = open_log(tmp_path, config)
    fill(log, before)
    far = 5 * 2**31
    for at in range(3):
        log.append_as_follower(batch_of(offset=far + at, leader_epoch=0), now_ms=NOW)
    assert (bases(log), log.log_end_offset) == ([0, far], far + 3)
    log.close(clean=clean, now_ms=NOW)
    log = open_log(tmp_path, config, clean=clean)
    log.advance_high_watermark(log.log_end_offset)
    held = [*range(before), far, far + 1, far + 2]
    assert (log.log_end_offset, read_all(log)) == (far + 3, held)
    log.truncate_to(far + 1, now_ms=NOW)
    assert read_all(log) == held[:-2]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("call", "path"),
    [
        ("pwrite", ".snapshot.tmp"),
        ("open", "1.log"),
        ("open", "1.index"),
        ("open", "1.timeindex"),
        ("ftruncate", "1.timeindex"),
    ],
)
def test_a_roll_that_fails_takes_nothing_from_what_follows(
    tmp_path: Path, call: str, path: str, clean: bool
) -> None:
    """When there is room again the old segment goes on, and a start finds all of it."""
    with using(Disk(tmp_path)) as disk:
        log = open_log(tmp_path)
        append(log, batch_of(producer=(7, 0, 0)))
        disk.fail(call, errno.ENOSPC, path=path, times=1)
        with pytest.raises(StorageError):
            log.roll(NOW)
        log.health.found(Finding.ROOM, "")
        append(log, batch_of(producer=(7, 0, 1)))
        assert bases(log) == [0]
        if clean:
            log.close(now_ms=NOW)
    log = open_log(tmp_path, clean=clean)
    log.advance_high_watermark(log.log_end_offset)
    assert (bases(log), read_all(log)) == ([0], [0, 1])
    log.roll(NOW)
    assert append(log, batch_of(producer=(7, 0, 2))) == 2
    assert (bases(log), log.log_end_offset) == ([0, 2], 3)


def test_a_rolled_segment_looks_like_kafkas(tmp_path: Path) -> None:
    """Indexes trimmed, the last time entry written, a producer snapshot at the new base."""
    log = open_log(tmp_path, SMALL)
    fill(log, 5)
    directory = tmp_path / "orders-3"
    assert (directory / f"{0:020d}.index").stat().st_size == 8
    assert (directory / f"{0:020d}.timeindex").stat().st_size == 24
    assert (directory / f"{4:020d}.index").stat().st_size == 10 << 20
    assert (directory / f"{4:020d}.snapshot").exists()


def test_rolling_an_empty_segment_changes_nothing(tmp_path: Path) -> None:
    """There is nothing to close."""
    log = open_log(tmp_path)
    log.roll(NOW)
    assert bases(log) == [0]


def test_preallocated_segments_are_trimmed_when_rolled(tmp_path: Path) -> None:
    """preallocate=true reserves the whole segment and gives the rest back."""
    log = open_log(tmp_path, LogConfig(segment_bytes=400, preallocate=True))
    fill(log, 5)
    sizes = [segment.file.path.stat().st_size for segment in log.segments]
    assert sizes == [log.segments[0].size, 400]
    assert log.segments[1].size < 400


def test_the_topic_id_is_kept_in_the_partition_directory(tmp_path: Path) -> None:
    """A directory of another topic of the same name is refused."""

    def opened(topic_id: UUID | None) -> PartitionLog:
        return PartitionLog.open(
            tmp_path / "orders-3",
            TP,
            LogConfig(),
            now_ms=NOW,
            topic_id=topic_id,
        )

    opened(TOPIC_ID).close()
    assert opened(None).topic_id == TOPIC_ID
    with pytest.raises(KafkaError, match="not AAAAAAAAAAAAAAAAAAAABQ") as raised:
        opened(UUID(int=5))
    assert raised.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


# --- retention, deletion, truncation -----------------------------------------------------------


def test_old_segments_are_renamed_and_handed_out(tmp_path: Path) -> None:
    """Their files get .deleted at once and are unlinked by the caller later."""
    log = open_log(tmp_path, LogConfig(segment_bytes=400, retention_ms=1000))
    fill(log, 9, step_ms=100)
    removed = log.delete_old_segments(NOW + 2000)
    assert bases(log) == [9]
    assert log.log_start_offset == 9
    assert {path.suffix for path in removed} == {".deleted"}
    assert all(path.exists() for path in removed)
    assert {path.name.split(".", 1)[1] for path in removed} == {
        "log.deleted",
        "index.deleted",
        "timeindex.deleted",
        "snapshot.deleted",
    }
    refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.read, 3, 100, upper_bound=9)


def test_a_quiet_topic_is_emptied(tmp_path: Path) -> None:
    """The active segment is rolled and goes too; offsets go on where they were."""
    log = open_log(tmp_path, LogConfig(retention_ms=1000))
    fill(log, 3)
    log.delete_old_segments(NOW + 5000)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (3, 3, 0)
    assert append(log, batch_of()) == 3


def test_compacted_topics_keep_their_old_segments(tmp_path: Path) -> None:
    """cleanup.policy=compact: only DeleteRecords frees whole segments."""
    config = LogConfig(segment_bytes=400, retention_ms=1, compact=True, delete=False)
    log = open_log(tmp_path, config)
    fill(log, 9)
    assert log.delete_old_segments(NOW + 10**9) == []
    log.delete_records_before(8)
    assert log.delete_old_segments(NOW + 10**9)
    assert bases(log) == [8]


def test_deleting_records_moves_the_start(tmp_path: Path) -> None:
    """At once for readers; the epoch across the new start begins there now."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    assert log.delete_records_before(6) == 6
    assert log.delete_records_before(2) == 6
    assert log.epochs.entries == [(0, 6)]
    refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.read, 5, 100, upper_bound=9)
    assert read_all(log) == [6, 7, 8]
    log.delete_old_segments(NOW)
    assert bases(log) == [4, 8]


def test_records_above_the_high_watermark_cannot_be_deleted(tmp_path: Path) -> None:
    """They may not be the log yet."""
    log = open_log(tmp_path)
    fill(log, 2)
    refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.delete_records_before, 3)


def test_a_slice_outlives_retention_and_deletion(tmp_path: Path) -> None:
    """A fetch that is being sent goes on, even when the files are gone."""
    log = open_log(tmp_path, LogConfig(segment_bytes=400, retention_ms=1))
    fill(log, 5)
    part = log.read(1, 1000, upper_bound=5)
    expected = part.read()
    for path in log.delete_old_segments(NOW + 10**6):
        path.unlink()
    log.close()
    assert part.intact
    assert part.read() == expected


@pytest.mark.parametrize("offset", range(10))
def test_truncation_cuts_whole_batches(tmp_path: Path, offset: int) -> None:
    """Offsets, segments, indexes and epochs agree afterwards, and appends go on."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    assert log.truncate_to(offset, now_ms=NOW) is (offset < 9)
    assert log.log_end_offset == offset
    assert log.high_watermark == offset
    assert read_all(log) == list(range(offset))
    assert append(log, batch_of(), epoch=7) == offset
    assert log.epochs.latest == 7
    log.close()
    again = open_log(tmp_path, SMALL)
    assert again.log_end_offset == offset + 1
    again.advance_high_watermark(offset + 1)
    assert read_all(again) == list(range(offset + 1))


def test_truncation_below_the_log_start_lowers_it(tmp_path: Path) -> None:
    """A log never starts above its end; what is appended next is the first record."""
    log = open_log(tmp_path)
    fill(log, 9)
    log.delete_records_before(8)
    log.truncate_to(3, now_ms=NOW)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 3, 3)
    assert append(log, batch_of(), epoch=7) == 3
    log.advance_high_watermark(4)
    assert read_all(log) == [3]
    assert log.delete_records_before(4) == 4


def test_truncation_inside_a_batch_drops_the_batch(tmp_path: Path) -> None:
    """Half a batch is not kept: the log ends before it."""
    log = open_log(tmp_path)
    fill(log, 3, records=3)
    log.truncate_to(7, now_ms=NOW)
    assert log.log_end_offset == 6


def test_truncation_forgets_what_producers_wrote_above_it(tmp_path: Path) -> None:
    """A batch that was cut may be sent again, and is not taken for a duplicate."""
    log = open_log(tmp_path)
    append(log, batch_of(2, producer=(9, 0, 0)))
    append(log, batch_of(2, producer=(9, 0, 2)))
    log.truncate_to(2, now_ms=NOW)
    assert append(log, batch_of(2, producer=(9, 0, 2))) == 2
    refused(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        append, log, batch_of(2, producer=(9, 0, 9)),
    )  # fmt: skip


def test_truncation_at_the_end_forgets_an_epoch_without_records(tmp_path: Path) -> None:
    """Who led and wrote nothing has an epoch at its end that no other log knows."""
    log = open_log(tmp_path)
    append(log, batch_of(), epoch=3)
    log.assign_epoch_start(5, log.log_end_offset)
    assert not log.truncate_to(log.log_end_offset, now_ms=NOW)
    assert log.latest_epoch == 3
    assert open_log(tmp_path).latest_epoch == 3


def test_a_slice_across_a_truncation_is_not_intact(tmp_path: Path) -> None:
    """Its sender must not send the bytes of batches written since."""
    log = open_log(tmp_path)
    fill(log, 4)
    kept = log.read(0, 91, upper_bound=4)
    cut = log.read(2, 1000, upper_bound=4)
    log.truncate_to(3, now_ms=NOW)
    append(log, batch_of(size=300))
    assert kept.intact
    assert not cut.intact


def test_starting_again_elsewhere(tmp_path: Path) -> None:
    """A follower whose leader has nothing older starts empty at the leader's start."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.truncate_fully_at(100, now_ms=NOW)
    assert bases(log) == [100]
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (100, 100, 100)
    assert append(log, batch_of()) == 100
    log.close()
    assert open_log(tmp_path, SMALL, log_start_offset=100).log_end_offset == 101


# --- flush and failure -------------------------------------------------------------------------


def test_flushes_are_due_by_messages_time_and_roll(tmp_path: Path) -> None:
    """flush.messages, flush.ms, and always after a roll; never when all is on the device."""
    log = open_log(tmp_path, LogConfig(flush_messages=3, flush_ms=1000))
    assert not log.flush_due(NOW + 10**6)
    fill(log, 2)
    assert not log.flush_due(NOW + 999)
    assert log.flush_due(NOW + 1000)
    fill(log, 1)
    assert log.flush_due(NOW)
    log.flush(now_ms=NOW)
    assert log.recovery_point == 3
    assert not log.flush_due(NOW + 500)
    log.config = LogConfig()
    fill(log, 1)
    assert not log.flush_due(NOW + 10**6)
    log.roll(NOW)
    assert log.flush_due(NOW)


def test_the_recovery_point_moves_when_the_plan_has_run(tmp_path: Path) -> None:
    """Appends meanwhile are not covered by it."""
    log = open_log(tmp_path, SMALL)
    fill(log, 6)
    plan = log.flush_plan()
    fill(log, 2)
    plan.run()
    assert log.recovery_point == 0
    log.flushed(plan, now_ms=NOW)
    assert log.recovery_point == 6


def test_files_written_before_a_rename_are_synced_after_it(tmp_path: Path) -> None:
    """A copy gets its final name after a sync, and may have written beside its segments since."""
    log = open_log(tmp_path)
    log.assign_topic_id(TOPIC_ID)
    final = log.directory.rename(tmp_path / "final")
    log.moved_to(final)
    assert final / "partition.metadata" in log.flush_plan().paths


def test_a_truncation_voids_a_plan(tmp_path: Path) -> None:
    """What was synced is not what the log holds now."""
    log = open_log(tmp_path)
    fill(log, 4)
    plan = log.flush_plan()
    plan.run()
    log.truncate_to(2, now_ms=NOW)
    fill(log, 5)
    log.flushed(plan, now_ms=NOW)
    assert log.recovery_point == 0


def test_a_failed_sync_takes_the_log_out_of_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never tried again: the kernel may have dropped the pages that failed."""
    log = open_log(tmp_path)
    fill(log, 2)
    plan = log.flush_plan()

    def broken(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    plan.run()
    monkeypatch.undo()
    with pytest.raises(StorageError, match="Input/output error"):
        log.flushed(plan, now_ms=NOW)
    assert log.recovery_point == 0
    refused(ErrorCode.KAFKA_STORAGE_ERROR, append, log, batch_of())


def test_an_io_error_takes_the_log_out_of_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed write nobody knows what the device holds: nothing is read either."""
    log = open_log(tmp_path)
    fill(log, 2)

    def broken(fd: int, data: bytes, at: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(StorageError, match="Input/output error"):
        append(log, batch_of())
    monkeypatch.undo()
    refused(ErrorCode.KAFKA_STORAGE_ERROR, append, log, batch_of())
    assert log.log_end_offset == 2
    refused(ErrorCode.KAFKA_STORAGE_ERROR, read_all, log)


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    """Appending after close is refused, not lost."""
    log = open_log(tmp_path)
    log.close()
    refused(ErrorCode.KAFKA_STORAGE_ERROR, append, log, batch_of())


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    """Their next batch may have any sequence."""
    log = open_log(tmp_path, LogConfig(producer_id_expiration_ms=1000))
    append(log, batch_of(producer=(9, 0, 0)))
    assert log.expire_producers(NOW + 999) == 0
    assert log.expire_producers(NOW + 1000) == 1
    append(log, batch_of(producer=(9, 0, 77)))


def test_truncation_removes_snapshots_of_what_is_cut(tmp_path: Path) -> None:
    """A later log with an end at the same offset is another one."""
    log = open_log(tmp_path)
    append(log, batch_of(3, producer=(1, 0, 0)))
    log.close()
    log = open_log(tmp_path)
    assert list(log.directory.glob("*.snapshot"))
    log.truncate_to(0, now_ms=NOW)
    assert not list(log.directory.glob("*.snapshot"))


def test_a_bound_on_producers_holds_when_the_log_is_read_again(tmp_path: Path) -> None:
    """From a snapshot and without one: the same are known, and all open transactions."""
    config = LogConfig(producer_ids_max=8)
    log = open_log(tmp_path, config)
    append(log, batch_of(producer=(100, 0, 0), transactional=True))
    for producer in range(50):
        append(log, batch_of(producer=(producer, 0, 0)))
    known = list(log.producers.producers)
    assert known == [100, *range(43, 50)]
    log.close()
    log = open_log(tmp_path, config)
    assert list(log.producers.producers) == known
    log.close()
    for snapshot in log.directory.glob("*.snapshot"):
        snapshot.unlink()
    log = open_log(tmp_path, config, clean=False)
    assert list(log.producers.producers) == known
    assert log.producers.first_unstable_offset == 0
