"""Truncations that fail half-way, for want of room or of file descriptors."""

import errno
from pathlib import Path

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.health import Finding
from barnabas_kafka.errors import KafkaError
from tests.broker.log.disk import Disk, using
from tests.broker.log.images import Loss, Machine, write_tree
from tests.broker.log.samples import (
    NOW,
    TP,
    append,
    batch_of,
    fill,
    housekeep,
    open_directories,
    read_all,
)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize(
    ("call", "path"),
    [("open", "50.log"), ("ftruncate", "50.index"), ("rename", "0.index"), ("rename", "4.log")],
)
def test_a_log_that_cannot_begin_again_is_kept(
    tmp_path: Path, call: str, path: str, error: int
) -> None:
    """For want of room, say: it serves what it has, stops and starts, and begins again later."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        log = logs.create(TP, LogConfig(segment_bytes=200), None, NOW)
        fill(log, 6)
        log.flush(now_ms=NOW)
        held, files = read_all(log), sorted(it.name for it in log.directory.glob("*.log"))
        assert len(files) > 2
        disk.fail(call, error, path=path, times=1)
        with pytest.raises(KafkaError):
            logs.truncate_fully_at(TP, 50, now_ms=NOW)
        assert (log.log_end_offset, read_all(log)) == (6, held)
        assert sorted(it.name for it in log.directory.glob("*.log")) == files
        housekeep(logs, NOW + 120_000)
        logs.close(now_ms=NOW)
        logs = open_directories(tmp_path / "data", config=LogConfig(segment_bytes=200))
        assert logs.clean_start
        log = logs.logs[TP]
        log.advance_high_watermark(6)
        assert read_all(log) == held
        logs.truncate_fully_at(TP, 50, now_ms=NOW)
        assert (log.log_start_offset, log.log_end_offset) == (50, 50)
        logs.close(now_ms=NOW)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize(
    ("call", "path", "after", "end"),
    [
        ("ftruncate", "2.log", 0, 6),
        ("dup", "2.log", 0, 6),
        ("ftruncate", "2.index", 0, 6),
        ("ftruncate", "2.index", 1, 3),
    ],
)
def test_a_truncation_that_fails_leaves_a_log_that_ends_where_its_files_do(
    tmp_path: Path, call: str, path: str, after: int, end: int, error: int
) -> None:
    """The next leader must not leave a hole, nor serve what is gone."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        log = logs.create(TP, LogConfig(segment_bytes=200), None, NOW)
        fill(log, 6)
        assert [it.base_offset for it in log.segments] == [0, 2, 4]
        disk.fail(call, error, path=path, after=after, times=1)
        with pytest.raises(KafkaError):
            logs.truncate(TP, 3, now_ms=NOW)
        assert (log.log_end_offset, len(read_all(log))) == (end, end)
        log.health.found(Finding.ROOM, "")
        fill(log, 1)
        assert len(read_all(log)) == end + 1
        logs.close(now_ms=NOW)
        logs = open_directories(tmp_path / "data", config=LogConfig(segment_bytes=200))
        assert logs.clean_start
        assert logs.logs[TP].log_end_offset == end + 1
        logs.close(now_ms=NOW)


@pytest.mark.parametrize(
    ("call", "path"), [("open", ".snapshot"), ("open", "leader-epoch-checkpoint.tmp")]
)
def test_no_sequence_of_a_batch_that_was_cut_passes_for_a_duplicate(
    tmp_path: Path, call: str, path: str
) -> None:
    """Though a file could not be opened at first: it would be acknowledged, and lost."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        log = logs.create(TP, LogConfig(segment_bytes=200), None, NOW)
        for sequence in range(6):
            append(log, batch_of(producer=(7, 0, sequence)), epoch=sequence)
        disk.fail(call, errno.EMFILE, path=path, times=1)
        with pytest.raises(KafkaError):
            logs.truncate(TP, 3, now_ms=NOW)
        log.health.found(Finding.ROOM, "")
        logs.truncate(TP, 3, now_ms=NOW)
        assert log.log_end_offset == 3
        append(log, batch_of(producer=(7, 0, 3)), epoch=6)
        assert log.log_end_offset == 4
        logs.close(now_ms=NOW)


@pytest.mark.parametrize("step", ["commit", "truncation"])
def test_names_are_durable_before_records_count(tmp_path: Path, step: str) -> None:
    """Where a commit found no descriptor, or a truncation gave up after it had renamed segments."""
    (tmp_path / "before").mkdir()
    config = LogConfig(segment_bytes=200)
    with using(Disk(tmp_path / "before")) as disk:
        logs = open_directories(tmp_path / "before" / "data", config=config)
        log = logs.create(TP, config, None, NOW)
        fill(log, 6)
        if step == "commit":
            disk.fail("open", errno.EMFILE, path=log.directory.name, times=1)
        plan = log.commit_plan()
        plan.run()
        if step == "truncation":
            disk.fail("dup", errno.EMFILE, times=1)
            with pytest.raises(KafkaError):
                logs.truncate(TP, 1, now_ms=NOW)
            log.committed(plan)
        else:
            with pytest.raises(KafkaError):
                log.committed(plan)
        again = log.commit_plan()
        again.run()
        log.committed(again)
        assert log.durable_offset == 6
    machine = Machine()
    for effect in disk.effects:
        machine.apply(effect)
    write_tree(machine.image(Loss.NOTHING_BACK), tmp_path / "after")
    logs = open_directories(tmp_path / "after" / "data", config=config)
    assert logs.logs[TP].log_end_offset == 6
    logs.close(now_ms=NOW)
