"""Starting on what a stop left behind: clean, killed at any byte, or with files damaged."""

import shutil
from pathlib import Path

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.loader import Checkpointed
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.segment import Segment
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.legacy import Message, encode_message
from tests.broker.log.samples import (
    NOW,
    SMALL,
    TP,
    append,
    batch_of,
    fill,
    marker_of,
    open_log,
    read_all,
    validated,
)
from tests.broker.log.syncs import watching


def segment(tmp_path: Path, base: int, suffix: str = ".log") -> Path:
    return tmp_path / "orders-3" / f"{base:020d}{suffix}"


def killed_copy(tmp_path: Path, log: PartitionLog) -> Path:
    """What the disk holds when the process dies now: the page cache survives it."""
    copy = tmp_path / "after"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(log.directory, copy / "orders-3")
    return copy


def reread(log: PartitionLog) -> list[int]:
    log.advance_high_watermark(log.log_end_offset)
    return read_all(log)


def test_a_clean_start_scans_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Everything is as it was closed, and no segment is read through."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.close()
    caplog.set_level("INFO")
    again = open_log(tmp_path, SMALL)
    assert "scanning" not in caplog.text
    assert (again.log_end_offset, again.recovery_point) == (9, 9)
    assert reread(again) == list(range(9))


def test_a_clean_close_trims_the_files(tmp_path: Path) -> None:
    """The active segment's indexes too; after a start they grow as they are written."""
    log = open_log(tmp_path)
    fill(log, 200)
    log.close()
    closed = segment(tmp_path, 0, ".index").stat().st_size
    assert closed < 1000
    again = open_log(tmp_path)
    assert segment(tmp_path, 0, ".index").stat().st_size == closed
    fill(again, 200)
    again.close()
    assert closed < segment(tmp_path, 0, ".index").stat().st_size < 2000


def test_a_kill_between_appends_loses_nothing(tmp_path: Path) -> None:
    """Every acknowledged byte is in the page cache; indexes are built again."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    again = open_log(killed_copy(tmp_path, log), SMALL, clean=False)
    assert (again.log_end_offset, again.recovery_point) == (9, 0)
    assert reread(again) == list(range(9))


def test_rebuilt_indexes_equal_the_ones_appends_made(tmp_path: Path) -> None:
    """Byte for byte, time index included."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=300))
    for number in range(60):
        append(log, batch_of(2, timestamp=NOW + (number * 7) % 50))
    copy = killed_copy(tmp_path, log)
    log.close()
    again = open_log(copy, LogConfig(index_interval_bytes=300), clean=False)
    again.close()
    for suffix in (".index", ".timeindex"):
        rebuilt = segment(copy, 0, suffix).read_bytes()
        assert rebuilt == segment(tmp_path, 0, suffix).read_bytes()
        assert rebuilt


def test_cut_at_every_byte_of_the_last_batch(tmp_path: Path) -> None:
    """Whatever part of it reached the disk, the log ends before it and takes appends again."""
    log = open_log(tmp_path)
    fill(log, 2, records=2)
    whole = log.size
    append(log, batch_of(2, producer=(9, 0, 0)))
    full = log.size
    for size in range(whole, full):
        copy = killed_copy(tmp_path, log)
        with segment(copy, 0).open("r+b") as file:
            file.truncate(size)
        again = open_log(copy, clean=False)
        assert again.log_end_offset == 4
        assert again.size == whole
        assert append(again, batch_of(producer=(9, 0, 0))) == 4
        assert reread(again) == [0, 1, 2, 3, 4]


def test_a_flip_at_any_byte_of_the_last_batch(tmp_path: Path) -> None:
    """A damaged batch is cut; only base offset and leader epoch lie outside its checksum."""
    log = open_log(tmp_path)
    fill(log, 2)
    start = log.size
    append(log, batch_of())
    unchecked = {*range(8), *range(12, 16)}
    for position in range(start, log.size):
        if position - start in unchecked:
            continue
        copy = killed_copy(tmp_path, log)
        data = bytearray(segment(copy, 0).read_bytes())
        data[position] ^= 0x40
        segment(copy, 0).write_bytes(data)
        assert open_log(copy, clean=False).log_end_offset == 2


def test_a_zero_hole_ends_the_log(tmp_path: Path) -> None:
    """Blocks allocated but not written before the power went read as zeros."""
    log = open_log(tmp_path)
    fill(log, 3)
    copy = killed_copy(tmp_path, log)
    with segment(copy, 0).open("ab") as file:
        file.write(bytes(5000))
    again = open_log(copy, clean=False)
    assert again.log_end_offset == 3
    assert again.size == log.size


def test_damage_in_an_old_segment_drops_the_later_ones(tmp_path: Path) -> None:
    """What follows a hole is not the log that was acknowledged."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    copy = killed_copy(tmp_path, log)
    data = bytearray(segment(copy, 4).read_bytes())
    data[200] ^= 0xFF
    segment(copy, 4).write_bytes(data)
    again = open_log(copy, SMALL, clean=False)
    assert again.log_end_offset == 6
    assert [entry.base_offset for entry in again.segments] == [0, 4]
    assert not segment(copy, 8).exists()
    assert reread(again) == list(range(6))


def test_a_batch_that_claims_offsets_of_the_next_segment_ends_the_log(tmp_path: Path) -> None:
    """No checksum covers base offsets, and who reads one that is too large skips what follows."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    after = killed_copy(tmp_path, log)
    second = sorted((after / "orders-3").glob("*.log"))[1]
    held = bytearray((after / "orders-3" / second.name).read_bytes())
    held[6] ^= 1
    (after / "orders-3" / second.name).write_bytes(held)
    again = open_log(after, SMALL, clean=False)
    assert again.log_end_offset == int(second.stem)
    assert reread(again) == list(range(again.log_end_offset))


@pytest.mark.parametrize("damage", [b"\0" * 40, b"\xff" * 40])
def test_a_log_that_cannot_be_read_after_a_clean_stop_is_repaired(
    tmp_path: Path, damage: bytes
) -> None:
    """The marker of a clean stop does not make bytes a log: the partition opens all the same."""
    log = open_log(tmp_path)
    fill(log, 9)
    log.close()
    with segment(tmp_path, 0).open("ab") as file:
        file.write(damage)
    again = open_log(tmp_path)
    assert again.log_end_offset == 9
    assert reread(again) == list(range(9))


def test_segments_below_the_recovery_point_are_trusted(tmp_path: Path) -> None:
    """They were synced; scanning terabytes again would keep the broker down for nothing."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.flush(now_ms=NOW)
    copy = killed_copy(tmp_path, log)
    segment(copy, 0, ".index").write_bytes(segment(tmp_path, 0, ".index").read_bytes())
    before = segment(copy, 0, ".index").stat().st_mtime_ns
    again = open_log(copy, SMALL, clean=False, recovery_point=8)
    assert segment(copy, 0, ".index").stat().st_mtime_ns == before
    assert again.recovery_point == 8
    assert reread(again) == list(range(9))


def test_gaps_of_a_compaction_are_no_loss_whatever_the_topic_is_now(tmp_path: Path) -> None:
    """Where the cleaner has been a segment may end short of the next; elsewhere its end is lost."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    second = log.segments[1].base_offset
    for cleaned_to, end in ((second, 9), (second - 1, second - 1), (0, second - 1)):
        after = killed_copy(tmp_path, log)
        found = Segment.open(after / "orders-3", 0, SMALL, NOW)
        found.truncate_to(second - 1, NOW)
        again = PartitionLog.open(
            after / "orders-3",
            TP,
            SMALL,
            Checkpointed(clean=False, cleaned_to=cleaned_to),
            now_ms=NOW,
        )
        assert again.log_end_offset == end
        shutil.rmtree(after)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "odd", "past the end"])
def test_damaged_indexes_are_built_again(tmp_path: Path, suffix: str, damage: str) -> None:
    """Also after a clean stop: somebody may have restored a backup badly."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.close()
    path = segment(tmp_path, 0, suffix)
    good = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "odd":
        path.write_bytes(good + b"x")
    elif suffix == ".index":
        path.write_bytes(good + b"\0\0\0\3\7\0\0\0")
    else:
        path.write_bytes(b"")
    again = open_log(tmp_path, SMALL)
    again.close()
    assert path.read_bytes() == good


def test_a_time_index_is_looked_at_where_nothing_is_in_the_other(tmp_path: Path) -> None:
    """A power cut may leave half an entry beside an empty offset index."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.close()
    segment(tmp_path, 0, ".index").write_bytes(b"")
    segment(tmp_path, 0, ".timeindex").write_bytes(b"\0" * 6)
    again = open_log(tmp_path, SMALL)
    assert reread(again) == list(range(9))
    assert segment(tmp_path, 0, ".timeindex").stat().st_size >= 12
    again.close()


def test_orphans_and_leftovers_are_removed(tmp_path: Path) -> None:
    """Half-done deletions, compactions and replacements are finished or undone."""
    log = open_log(tmp_path, SMALL)
    fill(log, 3)
    log.close()
    directory = tmp_path / "orders-3"
    for name in (
        f"{99:020d}.index",
        f"{99:020d}.timeindex",
        f"{7:020d}.log.deleted",
        f"{0:020d}.log.cleaned",
        "leader-epoch-checkpoint.tmp",
    ):
        (directory / name).write_bytes(b"left")
    again = open_log(tmp_path, SMALL)
    assert reread(again) == [0, 1, 2]
    assert not any(b"left" in path.read_bytes() for path in directory.glob("*") if path.is_file())


def test_a_finished_compaction_is_completed(tmp_path: Path) -> None:
    """The swap replaces every segment it was made of."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.close()
    swap = segment(tmp_path, 0, ".log.swap")
    swap.write_bytes(batch_of(offset=1, leader_epoch=0) + batch_of(offset=7, leader_epoch=0))
    again = open_log(tmp_path, SMALL)
    assert [entry.base_offset for entry in again.segments] == [0, 8]
    assert not swap.exists()
    assert reread(again) == [1, 7, 8]


def test_a_log_that_ends_below_its_start_begins_empty_there(tmp_path: Path) -> None:
    """Somebody removed segments: offsets that were given out are not given out again."""
    log = open_log(tmp_path)
    fill(log, 5)
    log.close()
    again = open_log(tmp_path, log_start_offset=8)
    assert (again.log_start_offset, again.log_end_offset) == (8, 8)
    assert append(again, batch_of()) == 8


def test_the_first_segment_bounds_the_start(tmp_path: Path) -> None:
    """Without a checkpoint the log starts where its oldest segment does."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    log.close()
    for path in (tmp_path / "orders-3").glob(f"{0:020d}.*"):
        path.unlink()
    assert open_log(tmp_path, SMALL).log_start_offset == 4


# --- producers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
def test_producers_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    """By snapshot after a clean stop, from the log after a kill."""
    log = open_log(tmp_path, SMALL)
    for sequence in range(0, 14, 2):
        append(log, batch_of(2, producer=(9, 0, sequence)))
    if clean:
        log.close()
        again = open_log(tmp_path, SMALL)
    else:
        again = open_log(killed_copy(tmp_path, log), SMALL, clean=False)
    info = again.append_as_leader(
        validated(batch_of(2, producer=(9, 0, 12))), leader_epoch=0, now_ms=NOW
    )
    assert (info.first_offset, info.duplicate) == (12, True)
    with pytest.raises(KafkaError, match="sent sequence 99 after 13"):
        append(again, batch_of(2, producer=(9, 0, 99)))
    assert append(again, batch_of(2, producer=(9, 0, 14))) == 14


def test_a_damaged_snapshot_is_replaced_by_the_log(tmp_path: Path) -> None:
    """The next older one, or the log from its start, gives the same state."""
    log = open_log(tmp_path, SMALL)
    for sequence in range(9):
        append(log, batch_of(producer=(9, 0, sequence)))
    log.close()
    for path in (tmp_path / "orders-3").glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = open_log(tmp_path, SMALL)
    assert again.producers.producers[9].last_sequence == 8


def test_open_transactions_survive_a_kill(tmp_path: Path) -> None:
    """The stable offset stays, and aborted ones are found again."""
    log = open_log(tmp_path)
    append(log, batch_of(producer=(8, 0, 0), transactional=True))
    log.append_as_leader(validated(marker_of(8, 0, commit=False)), leader_epoch=0, now_ms=NOW)
    append(log, batch_of(producer=(9, 0, 0), transactional=True))
    before = log.aborted_transactions(0, 9)
    copy = killed_copy(tmp_path, log)
    segment(copy, 0, ".txnindex").unlink()
    again = open_log(copy, clean=False)
    again.advance_high_watermark(again.log_end_offset)
    assert (again.high_watermark, again.last_stable_offset) == (3, 2)
    assert before
    assert again.aborted_transactions(0, 9) == before


# --- epochs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, b"garbage", b"0\n5\n0 0\n"])
def test_epochs_are_read_from_the_log_when_their_file_is_no_use(
    tmp_path: Path, content: bytes | None
) -> None:
    """Every batch carries its epoch; the checkpoint only saves looking."""
    log = open_log(tmp_path, SMALL)
    for epoch in (1, 1, 4, 9):
        append(log, batch_of(), epoch=epoch)
    entries = log.epochs.entries
    log.close()
    path = tmp_path / "orders-3" / "leader-epoch-checkpoint"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    again = open_log(tmp_path, SMALL)
    assert again.epochs.entries == entries
    assert path.read_bytes() == b"0\n3\n1 0\n4 2\n9 3\n"


def test_epochs_never_outlive_the_log(tmp_path: Path) -> None:
    """An epoch whose batches were torn off never began."""
    log = open_log(tmp_path)
    append(log, batch_of(), epoch=1)
    size = log.size
    append(log, batch_of(), epoch=2)
    copy = killed_copy(tmp_path, log)
    with segment(copy, 0).open("r+b") as file:
        file.truncate(size + 10)
    assert open_log(copy, clean=False).epochs.entries == [(1, 0)]


def test_an_empty_partition_is_opened_without_a_sync(tmp_path: Path) -> None:
    """Its epoch began where the log ends, and a start with thousands of them must not wait."""
    log = open_log(tmp_path)
    log.assign_epoch_start(4, 0)
    log.close()
    path = tmp_path / "orders-3" / "leader-epoch-checkpoint"
    with watching() as syncs:
        again = open_log(tmp_path)
    assert (again.epochs.entries, syncs.asked) == ([], [])
    again.close()
    assert path.read_bytes() == b"0\n0\n"


def test_an_empty_partition_is_recovered_without_a_sync(tmp_path: Path) -> None:
    """As above after a kill: what is written beside the log is synced with the next flush."""
    log = open_log(tmp_path)
    log.assign_epoch_start(4, 0)
    copy = killed_copy(tmp_path, log)
    with watching() as syncs:
        again = open_log(copy, clean=False)
    assert (again.epochs.entries, syncs.asked) == ([], [])
    path = copy / "orders-3" / "leader-epoch-checkpoint"
    assert path.read_bytes() == b"0\n0\n"
    with watching() as syncs:
        again.flush(now_ms=NOW)
    assert str(path) in {name for _, name in syncs.asked}


# --- old formats -------------------------------------------------------------------------------


def old_segment(magic: int) -> bytes:
    """Ten single messages of a format before 0.11, a second apart."""
    return b"".join(
        encode_message(
            Message(offset, NOW + offset * 1000 if magic else -1, b"k", b"v" * 40, magic, 0)
        )
        for offset in range(10)
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_segments_of_old_brokers_are_served(tmp_path: Path, magic: int) -> None:
    """Recovered, indexed and read as they are."""
    (tmp_path / "orders-3").mkdir()
    segment(tmp_path, 0).write_bytes(old_segment(magic) + b"torn")
    log = open_log(tmp_path, LogConfig(index_interval_bytes=100), clean=False)
    assert log.log_end_offset == 10
    assert log.latest_epoch == -1
    part = log.read(4, 10, upper_bound=10)
    entry = len(old_segment(magic)) // 10
    assert part.read() == old_segment(magic)[4 * entry : 5 * entry]
    assert append(log, batch_of()) == 10
    assert len(log.segments[0].offsets) > 1
    if magic:
        assert log.offset_for_timestamp(NOW + 3500) == (4, NOW + 4000, -1)
    else:
        assert log.segments[0].times.last_entry[0] in (-1, NOW)


def test_a_damaged_old_message_is_cut(tmp_path: Path) -> None:
    """Formats 0 and 1 have zlib's CRC-32."""
    (tmp_path / "orders-3").mkdir()
    data = bytearray(old_segment(1))
    data[-1] ^= 1
    segment(tmp_path, 0).write_bytes(data)
    assert open_log(tmp_path, clean=False).log_end_offset == 9


def test_compressed_batches_are_indexed_without_unpacking(tmp_path: Path) -> None:
    """Header and checksum are all that recovery looks at."""
    log = open_log(tmp_path)
    for codec in Codec:
        append(log, batch_of(50, codec=codec))
    again = open_log(killed_copy(tmp_path, log), clean=False)
    assert again.log_end_offset == 250
    assert reread(again) == list(range(250))


def test_an_end_lost_at_a_batchs_boundary_makes_no_hole(tmp_path: Path) -> None:
    """The kernel wrote a later segment back and an earlier one only in part: the later one goes."""
    log = open_log(tmp_path, SMALL)
    fill(log, 9)
    copy = killed_copy(tmp_path, log)
    first = segment(copy, 0)
    first.write_bytes(first.read_bytes()[: first.stat().st_size // 4])
    again = open_log(copy, SMALL, clean=False)
    assert (len(again.segments), again.log_end_offset) == (1, 1)
    assert append(again, batch_of()) == 1
    assert reread(again) == [0, 1]


def test_an_offset_that_does_not_follow_ends_the_log(tmp_path: Path) -> None:
    """A batch that is right in itself, but was written for another place."""
    log = open_log(tmp_path)
    fill(log, 3)
    data = log.read(0, 10_000, upper_bound=3).read()
    copy = killed_copy(tmp_path, log)
    segment(copy, 0).write_bytes(data + data[: len(data) // 3])
    again = open_log(copy, clean=False)
    assert (again.log_end_offset, again.size) == (3, len(data))


def test_epochs_found_in_the_log_are_written_down(tmp_path: Path) -> None:
    """The next start may be a clean one, which reads no batches."""
    log = open_log(tmp_path)
    append(log, batch_of(), epoch=0)
    checkpoint = (log.directory / "leader-epoch-checkpoint").read_bytes()
    append(log, batch_of(), epoch=4)
    copy = killed_copy(tmp_path, log)
    (copy / "orders-3" / "leader-epoch-checkpoint").write_bytes(checkpoint)
    open_log(copy, clean=False).close()
    assert open_log(copy).latest_epoch == 4
