"""What was given up goes when its time has come, or when room is missing."""

import errno
import os
from pathlib import Path

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.health import DirectoryHealth
from barnabas_broker.log.removals import Removals, remove_given_up
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.log.disk import Disk, using
from tests.broker.log.samples import NOW, TOPIC_ID, TP, fill, open_directories, read_all


def run_due(removals: Removals, now_ms: int) -> None:
    for work in removals.take_due(now_ms):
        work()


def test_nothing_goes_before_its_time(tmp_path: Path) -> None:
    """Files and directories, each at its own moment, once."""
    tree, file = tmp_path / "tree", tmp_path / "0.log.deleted"
    (tree / "deep").mkdir(parents=True)
    file.write_bytes(b"x")
    removals, health = Removals(), DirectoryHealth(tmp_path)
    removals.add_tree(tree, health, NOW + 5)
    removals.add_files([file], health, NOW + 10)
    run_due(removals, NOW + 4)
    assert tree.exists()
    run_due(removals, NOW + 9)
    assert (tree.exists(), file.exists()) == (False, True)
    run_due(removals, NOW + 10)
    assert not file.exists()
    assert removals.take_due(NOW + 1000) == []


def test_a_full_disk_waits_for_no_delay(tmp_path: Path) -> None:
    """That of the directory that is full; another keeps its custom."""
    full, roomy = DirectoryHealth(tmp_path / "full"), DirectoryHealth(tmp_path / "roomy")
    removals = Removals()
    for health in (full, roomy):
        health.path.mkdir()
        (health.path / "0.log.deleted").write_bytes(b"x")
        removals.add_files([health.path / "0.log.deleted"], health, NOW + 60_000)
    full.failed(OSError(errno.ENOSPC, "No space left on device"))
    run_due(removals, NOW)
    assert not (full.path / "0.log.deleted").exists()
    assert (roomy.path / "0.log.deleted").exists()


def test_missing_directories_are_ignored_and_failures_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first is as it should be; the second is told and left."""
    remove_given_up(tmp_path / "gone")
    assert not caplog.text
    (tmp_path / "file").write_bytes(b"")
    remove_given_up(tmp_path / "file")
    assert "Failed to delete an unused log" in caplog.text


def lack_descriptors(path: Path) -> None:
    """Open nothing."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))


def test_a_log_that_could_not_be_created_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without file descriptors what there is of it stays; a start finds no log in two places."""
    logs = open_directories(tmp_path / "a", tmp_path / "b")
    with using(Disk(tmp_path)) as disk, monkeypatch.context() as patch:
        disk.fail("open", errno.EMFILE, path=".log")
        patch.setattr(os, "scandir", lack_descriptors)
        with pytest.raises(KafkaError, match=os.strerror(errno.EMFILE)):
            logs.create(TP, LogConfig(), TOPIC_ID, NOW)
    for tp in (TopicPartition("other", 0), TP):
        fill(logs.create(tp, LogConfig(), TOPIC_ID, NOW), 5)
    logs.close()
    logs = open_directories(tmp_path / "a", tmp_path / "b")
    assert read_all(logs.logs[TP]) == [0, 1, 2, 3, 4]
    logs.close()
