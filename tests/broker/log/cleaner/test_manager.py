"""Choosing logs, taking over what a cleaning made, and giving up."""

from pathlib import Path

import pytest

from barnabas_broker.log.cleaner.cleaning import Cleaning
from barnabas_broker.log.cleaner.manager import CleanerManager, NoLongerWantedError
from barnabas_broker.log.health import DirectoryHealth
from barnabas_kafka.ids import TopicPartition
from tests.broker.log.cleaner.histories import (
    COMPACT,
    PLENTY,
    clean,
    open_compacted,
    survivors,
    write,
)
from tests.broker.log.samples import NOW, open_directories


def test_the_filthiest_log_first(tmp_path: Path) -> None:
    """By the share of dirty bytes; one that is being cleaned is not chosen again."""
    logs = open_directories(tmp_path, config=COMPACT)
    for name, count in (("cleaner", 9), ("dirtier", 30), ("empty", 0)):
        log = logs.create(TopicPartition(name, 0), COMPACT, None, NOW)
        for _ in range(count):
            write(log, (b"key", b"v" * 100))
        log.cleaned_to = 6 if count else None
    manager = CleanerManager(logs)
    first = manager.pick(NOW, PLENTY)
    second = manager.pick(NOW, PLENTY)
    assert first is not None
    assert second is not None
    assert [first.tp.topic, second.tp.topic] == ["dirtier", "cleaner"]
    assert manager.pick(NOW, PLENTY) is None
    assert manager.stats.max_dirty_percent == 0
    manager.abandon(first, "stopped")
    again = manager.pick(NOW, PLENTY)
    assert again is not None
    assert again.tp.topic == "dirtier"
    assert manager.stats.max_dirty_percent > 50


def test_progress_survives_a_restart(tmp_path: Path) -> None:
    """Apache's cleaner-offset-checkpoint says where the next cleaning begins."""
    logs, log = open_compacted(tmp_path)
    for number in range(20):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 40))
    assert clean(logs) is not None
    cleaned_to = log.cleaned_to
    text = (tmp_path / "cleaner-offset-checkpoint").read_text()
    assert text == f"0\n1\norders 3 {cleaned_to}\n"
    logs.close(clean=True, broker_epoch=1, now_ms=NOW)
    logs, log = open_compacted(tmp_path)
    assert log.cleaned_to == cleaned_to
    assert clean(logs) is None
    logs.close(clean=False)


def test_a_truncation_lowers_it(tmp_path: Path) -> None:
    """What is written again above the cut is dirty."""
    logs, log = open_compacted(tmp_path)
    for number in range(20):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 40))
    clean(logs)
    log.truncate_to(11, now_ms=NOW)
    assert log.cleaned_to == log.log_end_offset
    log.truncate_fully_at(50, now_ms=NOW)
    assert log.cleaned_to is None


def test_a_mark_of_no_use_is_forgotten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A log that was replaced or cut behind our back is cleaned from its start."""
    logs, log = open_compacted(tmp_path)
    for number in range(20):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 40))
    log.cleaned_to = 500
    task = CleanerManager(logs).pick(NOW, PLENTY)
    assert task is not None
    assert task.job.first_dirty == 0
    assert "the whole log is dirty" in caplog.text


def test_a_log_that_is_gone_takes_nothing_over(tmp_path: Path) -> None:
    """Deleting a topic ends its cleaning, and what it left goes with it."""
    logs, log = open_compacted(tmp_path)
    for number in range(20):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 40))
    manager = CleanerManager(logs)
    task = manager.pick(NOW, PLENTY)
    assert task is not None
    announced: list[list[int]] = []
    result = Cleaning(task.job, lambda ready: announced.append(ready.replaced)).run()
    logs.delete(log.tp, NOW)
    with pytest.raises(NoLongerWantedError, match="deleted"):
        manager.swap(task, announced[0], NOW)
    with pytest.raises(NoLongerWantedError, match="deleted"):
        manager.done(task, result)
    manager.abandon(task, "deleted")
    assert not list(tmp_path.rglob("*.cleaned"))
    assert manager.pick(NOW, PLENTY) is None


def test_a_log_that_was_cut_takes_nothing_over(tmp_path: Path) -> None:
    """Neither does one that lost segments to retention, or is not compacted any more."""
    logs, log = open_compacted(tmp_path)
    for number in range(20):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 40))
    manager = CleanerManager(logs)
    task = manager.pick(NOW, PLENTY)
    assert task is not None
    log.delete_records_before(9)
    log.delete_old_segments(NOW)
    before = survivors(log)
    with pytest.raises(NoLongerWantedError, match="retention"):
        manager.swap(task, task.job.segments[:2], NOW)
    log.config = type(COMPACT)()
    with pytest.raises(NoLongerWantedError, match="not compacted"):
        manager.check_wanted(task)
    log.config = COMPACT
    health, log.health = log.health, DirectoryHealth.gone(log.directory, "on fire")
    with pytest.raises(NoLongerWantedError, match="on fire"):
        manager.check_wanted(task)
    log.health = health
    assert survivors(log) == before
    log.truncate_to(15, now_ms=NOW)
    with pytest.raises(NoLongerWantedError, match="truncated"):
        manager.check_wanted(task)


def test_giving_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged log is named once with the reason, and the others go on."""
    logs, log = open_compacted(tmp_path)
    for number in range(20):
        write(log, (b"key", b"v%d" % number), (b"other", b"x" * 40))
    manager = CleanerManager(logs)
    task = manager.pick(NOW, PLENTY)
    assert task is not None
    manager.give_up(task, "at position 5: no batch")
    assert manager.uncleanable == {log.tp: "at position 5: no batch"}
    assert manager.uncleanable_bytes(NOW) == task.filth.cleanable_bytes
    assert manager.pick(NOW, PLENTY) is None
    assert caplog.text.count("Failed to clean: partition=") == 1
    logs.delete(log.tp, NOW)
    assert manager.pick(NOW, PLENTY) is None
    assert manager.uncleanable == {}
