"""The log of a partition as its owner uses it: appends, reads, offsets."""

import errno
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.producer_state import Origin
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.records import batch as record_batches
from tests.broker.log.disk import Disk, using
from tests.broker.log.samples import (
    NOW,
    SMALL,
    append,
    bases,
    batch_of,
    fill,
    marker_of,
    offsets_in,
    open_log,
    read_all,
    refused,
    validated,
)

# --- append ------------------------------------------------------------------------------------


def test_batches_get_offsets_and_epoch_in_place(tmp_path: Path) -> None:
    """The stored bytes are the producer's but for base offset and leader epoch."""
    log = open_log(tmp_path)
    append(log, batch_of(3), epoch=4)
    sent = batch_of(2)
    info = log.append_as_leader(validated(sent), leader_epoch=4, now_ms=NOW)
    assert (info.first_offset, info.last_offset, info.duplicate) == (3, 4, False)
    assert info.log_append_time == -1
    stored = log.read(3, 1000, upper_bound=5).read()
    header = record_batches.parse_header(stored)
    assert (header.base_offset, header.leader_epoch) == (3, 4)
    assert stored[8:12] + stored[16:] == sent[8:12] + sent[16:]


def test_one_append_may_hold_several_batches(tmp_path: Path) -> None:
    """Older producers send more than one; offsets run through."""
    log = open_log(tmp_path)
    info = log.append_as_leader(validated(batch_of(2) + batch_of(3)), leader_epoch=0, now_ms=NOW)
    assert (info.first_offset, info.last_offset) == (0, 4)
    log.advance_high_watermark(5)
    assert read_all(log) == [0, 1, 2, 3, 4]


def test_append_time_is_reported_under_log_append_time(tmp_path: Path) -> None:
    """The producer is told the broker's clock; the validator has put it into the batch."""
    log = open_log(tmp_path, LogConfig(timestamp_type=record_batches.TimestampType.APPEND))
    info = log.append_as_leader(validated(batch_of()), leader_epoch=0, now_ms=NOW + 5)
    assert info.log_append_time == NOW + 5


def test_a_retried_batch_gets_its_original_offsets(tmp_path: Path) -> None:
    """Nothing is written twice."""
    log = open_log(tmp_path)
    first = batch_of(2, producer=(9, 0, 0))
    append(log, first)
    append(log, batch_of(2, producer=(9, 0, 2)))
    size = log.size
    info = log.append_as_leader(validated(first), leader_epoch=0, now_ms=NOW)
    assert (info.first_offset, info.last_offset, info.duplicate) == (0, 1, True)
    assert (log.size, log.log_end_offset) == (size, 4)


def test_a_gap_in_sequences_is_refused(tmp_path: Path) -> None:
    """And leaves the log as it was."""
    log = open_log(tmp_path)
    append(log, batch_of(2, producer=(9, 0, 0)))
    refused(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        append, log, batch_of(1, producer=(9, 0, 5)),
    )  # fmt: skip
    assert log.log_end_offset == 2


@pytest.mark.parametrize("kind", ["validated", "plain", "run", "follower"])
@pytest.mark.parametrize("index", ["offsets", "times"])
def test_a_batch_that_is_written_and_then_fails_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, index: str
) -> None:
    """The log's end has not moved: a second batch of the same offsets would hide from readers."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0))
    fill(log, 3)
    size, end = log.size, log.log_end_offset

    def add(timestamp: int) -> object:
        data = bytearray(batch_of(timestamp=timestamp, offset=end, leader_epoch=0))
        if kind == "validated":
            return append(log, bytes(data))
        if kind == "plain":
            return log.append_plain(memoryview(data), 1, timestamp, leader_epoch=0, now_ms=NOW)
        if kind == "follower":
            return log.append_as_follower(data, now_ms=NOW)
        return log.append_run(data, [(len(data), 1, timestamp)], leader_epoch=0, now_ms=NOW)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        of_index = type(getattr(log.active, index))
        patch.setattr(of_index, {"offsets": "append", "times": "maybe_append"}[index], fail)
        with pytest.raises(MemoryError):
            add(NOW + 99)
    assert (log.size, log.log_end_offset) == (size, end)
    assert log.active.max_timestamp < NOW + 99
    add(NOW + 50)
    log.advance_high_watermark(end + 1)
    assert read_all(log) == [*range(end + 1)]
    log.roll(NOW)
    assert bases(log)[-1] == end + 1


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    """It could never be stored."""
    refused(ErrorCode.RECORD_LIST_TOO_LARGE, append, open_log(tmp_path, SMALL), batch_of(size=400))


def test_a_follower_takes_a_batch_larger_than_a_segment(tmp_path: Path) -> None:
    """It is in the leader's log, where `segment.bytes` was larger: the next ones are behind it."""
    log = open_log(tmp_path, SMALL)
    for offset in range(3):
        data = batch_of(size=400, offset=offset, leader_epoch=0)
        log.append_as_follower(data, now_ms=NOW)
    assert bases(log) == [0, 1, 2]
    log.advance_high_watermark(3)
    assert read_all(log) == [0, 1, 2]


def test_a_follower_without_room_has_no_epoch_of_records_that_it_lacks(tmp_path: Path) -> None:
    """In an election by log ends it would win over a replica with more records."""
    with using(Disk(tmp_path)) as disk:
        log = open_log(tmp_path)
        log.append_as_follower(batch_of(offset=0, leader_epoch=1), now_ms=NOW)
        disk.fail("pwrite", errno.ENOSPC, path=".log")
        data = batch_of(offset=1, leader_epoch=1) + batch_of(offset=2, leader_epoch=5)
        refused(ErrorCode.KAFKA_STORAGE_ERROR, log.append_as_follower, data, now_ms=NOW)
    assert (log.latest_epoch, log.log_end_offset) == (1, 1)


RUNS = st.lists(
    st.lists(
        st.builds(
            batch_of,
            st.integers(1, 3),
            size=st.integers(0, 60),
            timestamp=st.integers(NOW, NOW + 9),
        ),
        min_size=1,
        max_size=6,
    ),
    max_size=12,
)


def append_each(log: PartitionLog, batches: Sequence[bytes]) -> list[int]:
    """Append batches one by one; their first offsets."""
    found = []
    for batch in batches:
        header = record_batches.parse_header(batch)
        data = memoryview(bytearray(batch))
        found.append(
            log.append_plain(
                data, header.record_count, header.max_timestamp, leader_epoch=0, now_ms=NOW
            )
        )
    return found


def append_together(log: PartitionLog, batches: Sequence[bytes]) -> int | None:
    """Append batches as one run; the first offset, or None."""
    headers = [record_batches.parse_header(batch) for batch in batches]
    run = [
        (len(batch), header.record_count, header.max_timestamp)
        for batch, header in zip(batches, headers, strict=True)
    ]
    return log.append_run(bytearray(b"".join(batches)), run, leader_epoch=0, now_ms=NOW)


@settings(max_examples=30)
@given(runs=RUNS, interval=st.sampled_from((0, 100, 300)), ms=st.sampled_from((3, 1000)))
def test_a_run_leaves_what_appends_one_by_one_leave(
    runs: list[list[bytes]], interval: int, ms: int
) -> None:
    """Files, indexes, numbers and offsets; where a run is not taken, nothing has changed."""
    config = LogConfig(
        segment_bytes=900, index_interval_bytes=interval, segment_ms=ms, segment_index_bytes=60
    )
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        apart, together = (open_log(Path(directory), config) for directory in (one, other))
        for log in (apart, together):
            log.assign_epoch_start(0, 0)
        for run in runs:
            expected = append_each(apart, run)
            before = (together.size, together.log_end_offset, len(together.segments))
            offset = append_together(together, run)
            if offset is None:
                assert (together.size, together.log_end_offset, len(together.segments)) == before
                offset = append_each(together, run)[0]
            assert offset == expected[0]
        assert bases(apart) == bases(together)
        assert apart.log_end_offset == together.log_end_offset
        assert [s.stats for s in apart.segments] == [s.stats for s in together.segments]
        assert [s.max_timestamp for s in apart.segments] == [
            s.max_timestamp for s in together.segments
        ]
        for log in (apart, together):
            log.close(now_ms=NOW)
        assert files_in(Path(one)) == files_in(Path(other))


def files_in(directory: Path) -> dict[Path, bytes]:
    """All files below a directory and what is in them."""
    return {
        path.relative_to(directory): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_a_run_is_one_write(tmp_path: Path) -> None:
    """The first batch of a segment goes alone; it says when the segment began."""
    with using(Disk(tmp_path)) as disk:
        log = open_log(tmp_path)
        log.assign_epoch_start(0, 0)
        assert append_together(log, [batch_of(), batch_of()]) is None
        assert append_together(log, [batch_of()]) == 0
        before = len(disk.effects)
        assert append_together(log, [batch_of(2), batch_of(3)]) == 1
        assert [effect.kind for effect in disk.effects[before:]] == ["write"]
        assert log.log_end_offset == 6
        log.advance_high_watermark(6)
        assert read_all(log) == [0, 1, 2, 3, 4, 5]


def test_a_run_is_refused_where_a_batch_would_be(tmp_path: Path) -> None:
    """Without an error; an epoch that is new to the log is noted when a batch comes alone."""
    log = open_log(tmp_path)
    append(log, batch_of())
    run = [(len(batch_of()), 1, NOW)]
    assert log.append_run(bytearray(batch_of()), run, leader_epoch=1, now_ms=NOW) is None
    log.health.failed(OSError(errno.EIO, "broken"))
    assert append_together(log, [batch_of(), batch_of()]) is None
    refused(ErrorCode.KAFKA_STORAGE_ERROR, append_each, log, [batch_of()])


@pytest.mark.parametrize("short", [0, 30])
def test_a_run_for_which_there_is_no_room_leaves_nothing(tmp_path: Path, short: int) -> None:
    """Some of its batches may still fit: the log stays in service until one alone does not."""
    with using(Disk(tmp_path)) as disk:
        log = open_log(tmp_path)
        append(log, batch_of())
        size = log.size
        disk.fail("pwrite", errno.ENOSPC, path=".log", short=short)
        assert append_together(log, [batch_of(), batch_of()]) is None
        assert (log.size, log.log_end_offset, log.health.writable) == (size, 1, True)
        assert log.active.file.path.stat().st_size == size
        refused(ErrorCode.KAFKA_STORAGE_ERROR, append_each, log, [batch_of()])
        assert not log.health.writable


def test_followers_store_what_the_leader_sent(tmp_path: Path) -> None:
    """Offsets, epochs and bytes are the leader's; a batch cut off by the fetch is left out."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    leader, follower = open_log(tmp_path / "a"), open_log(tmp_path / "b")
    append(leader, batch_of(2), epoch=1)
    append(leader, batch_of(2), epoch=3)
    data = leader.read(0, 1000, upper_bound=4).read()
    info = follower.append_as_follower(data + data[:80], now_ms=NOW)
    assert info is not None
    assert (info.first_offset, info.last_offset) == (0, 3)
    assert follower.epochs.entries == leader.epochs.entries
    assert follower.read(0, 1000, upper_bound=4).read() == data
    assert follower.append_as_follower(data[:30], now_ms=NOW) is None


def test_followers_check_what_they_get(tmp_path: Path) -> None:
    """A flipped bit on the way, or offsets the log already has, are refused."""
    log = open_log(tmp_path)
    data = bytearray(batch_of(2, leader_epoch=0))
    data[-1] ^= 1
    refused(ErrorCode.CORRUPT_MESSAGE, log.append_as_follower, data, now_ms=NOW)
    good = batch_of(2, leader_epoch=0)
    log.append_as_follower(good, now_ms=NOW)
    refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.append_as_follower, good, now_ms=NOW)


# --- read --------------------------------------------------------------------------------------


def test_reads_end_on_whole_batches(tmp_path: Path) -> None:
    """As many as fit in max_bytes, and always the first."""
    log = open_log(tmp_path)
    fill(log, 10, records=3)
    size = log.size // 10
    for limit in range(0, 4 * size + 2, 7):
        part = log.read(4, limit, upper_bound=30)
        assert part.length == max(limit // size, 1) * size
        assert part.first_offset == 3


def test_without_the_first_batch_rule_too_little_room_reads_nothing(tmp_path: Path) -> None:
    """Only one partition of a fetch may exceed its limits."""
    log = open_log(tmp_path)
    fill(log, 2)
    assert log.read(0, 10, upper_bound=2, at_least_one=False).length == 0


def test_reads_stop_below_the_upper_bound(tmp_path: Path) -> None:
    """Consumers see no batch above the high watermark, whatever max_bytes allows."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=100))
    fill(log, 300)
    for bound in (1, 7, 150, 299, 300):
        found = offsets_in(log.read(0, 1 << 20, upper_bound=bound).read())
        assert found == list(range(bound))


def test_reads_do_not_cross_segments(tmp_path: Path) -> None:
    """The rest comes with the next fetch."""
    log = open_log(tmp_path, SMALL)
    fill(log, 6)
    assert offsets_in(log.read(2, 10_000, upper_bound=6).read()) == [2, 3]
    assert offsets_in(log.read(2, 10_000, upper_bound=3).read()) == [2]


def test_every_offset_is_found_in_the_tail_and_below_it(tmp_path: Path) -> None:
    """The exact memory of the youngest batches and the sparse index agree."""
    log = open_log(tmp_path, LogConfig(index_interval_bytes=300))
    fill(log, 400, records=2)
    for offset in range(0, 800, 3):
        data = log.read(offset, 1, upper_bound=800).read()
        assert offset in offsets_in(data)
    log.close()
    log = open_log(tmp_path, LogConfig(index_interval_bytes=300))
    for offset in range(0, 800, 7):
        assert offset in offsets_in(log.read(offset, 1, upper_bound=800).read())


def test_reading_at_the_end_gives_nothing(tmp_path: Path) -> None:
    """There is nothing yet; the fetch waits."""
    log = open_log(tmp_path)
    fill(log, 2)
    assert log.read(2, 100, upper_bound=2).length == 0
    assert log.read(1, 100, upper_bound=1).length == 0


@pytest.mark.parametrize("offset", [-1, 3, 9])
def test_offsets_outside_the_log_are_out_of_range(tmp_path: Path, offset: int) -> None:
    """The consumer resets its position."""
    log = open_log(tmp_path)
    fill(log, 2)
    refused(ErrorCode.OFFSET_OUT_OF_RANGE, log.read, offset, 100, upper_bound=2)


def test_gaps_are_read_over(tmp_path: Path) -> None:
    """Compaction removes batches: an offset in the gap is served by the batch behind it."""
    log = open_log(tmp_path, LogConfig(segment_bytes=200))
    for offset in (0, 10, 20, 30):
        log.append_as_follower(batch_of(offset=offset, leader_epoch=0), now_ms=NOW)
    log.advance_high_watermark(31)
    assert bases(log) == [0, 11]
    assert read_all(log) == [0, 10, 20, 30]
    assert offsets_in(log.read(5, 1, upper_bound=31).read()) == [10]
    assert offsets_in(log.read(12, 1, upper_bound=31).read()) == [20]


# --- offsets and transactions ------------------------------------------------------------------


def test_the_high_watermark_stays_within_the_log(tmp_path: Path) -> None:
    """A checkpoint may be newer or older than what is left of the log."""
    log = open_log(tmp_path)
    fill(log, 5)
    log.advance_high_watermark(99)
    assert log.high_watermark == 5
    log.delete_records_before(3)
    log.advance_high_watermark(1)
    assert log.high_watermark == 3


def test_transactions_hold_the_last_stable_offset(tmp_path: Path) -> None:
    """Until their marker is replicated; an abort is told to readers."""
    log = open_log(tmp_path)
    fill(log, 2)
    append(log, batch_of(2, producer=(9, 0, 0), transactional=True))
    fill(log, 1)
    assert (log.high_watermark, log.last_stable_offset) == (5, 2)
    marker = validated(marker_of(9, 0, commit=False))
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    assert log.last_stable_offset == 2
    log.advance_high_watermark(6)
    assert log.last_stable_offset == 6
    assert log.aborted_transactions(0, 6) == [AbortedTransaction(9, 2, 5, 6)]
    assert log.aborted_transactions(0, 2) == []


def test_epochs_are_noted_with_their_first_offset(tmp_path: Path) -> None:
    """In memory and in the checkpoint file beside the log."""
    log = open_log(tmp_path)
    append(log, batch_of(), epoch=1)
    append(log, batch_of(), epoch=1)
    append(log, batch_of(), epoch=5)
    checkpoint = tmp_path / "orders-3" / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n2\n1 0\n5 2\n"
    assert log.latest_epoch == 5
    assert log.end_offset_for_epoch(1) == (1, 2)
    assert log.end_offset_for_epoch(5) == (5, 3)
    assert log.epochs.epoch_at(1) == 1


@pytest.mark.parametrize("bound", [1, 2])
def test_a_bound_inside_a_batch_hides_the_whole_batch(tmp_path: Path, bound: int) -> None:
    """Nothing above the bound is shown, even where a first batch must be given."""
    log = open_log(tmp_path)
    fill(log, 2, records=3)
    assert log.read(0, 1000, upper_bound=bound).length == 0
    assert offsets_in(log.read(0, 1000, upper_bound=3 + bound).read()) == [0, 1, 2]


def test_a_bound_in_an_earlier_segment_hides_later_ones(tmp_path: Path) -> None:
    """An offset in a gap is served by a later segment only if the bound lies beyond it."""
    log = open_log(tmp_path, LogConfig(segment_bytes=100))
    for offset in (0, 50):
        log.append_as_follower(batch_of(offset=offset, leader_epoch=0), now_ms=0)
    assert log.read(10, 1000, upper_bound=40).length == 0
    assert offsets_in(log.read(10, 1000, upper_bound=51).read()) == [50]


def test_an_empty_slice_has_no_bytes(tmp_path: Path) -> None:
    """It is asked for like any other, and is intact."""
    log = open_log(tmp_path)
    part = log.segments.empty_slice(7)
    assert (part.length, part.first_offset, part.read(), part.intact) == (0, 7, b"", True)
