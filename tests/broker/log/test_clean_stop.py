"""What a clean stop syncs: all that has changed, nothing else, and many logs at once."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log import files
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.descriptors import none_left
from tests.broker.log.disk import Disk, using
from tests.broker.log.images import Loss, Machine, write_tree
from tests.broker.log.samples import CLUSTER, NOW, TOPIC_ID, fill, open_directories, read_all
from tests.broker.log.syncs import watching
from tests.waiting import ANSWER, seconds

PARTITIONS = [TopicPartition("t", number) for number in range(3)]


def of_partitions(asked: list[tuple[str, str]]) -> list[str]:
    """The syncs of partitions' directories and their files, by partition and name."""
    found = []
    for _, path in asked:
        parts = Path(path).parts
        home = [at for at, part in enumerate(parts) if part.startswith("t-")]
        found += ["/".join(parts[at:]) for at in home]
    return sorted(found)


def idle_with_a_new_epoch(path: Path) -> LogDirectories:
    """A log that was stopped cleanly, and of which only the leader epoch is new since."""
    logs = open_directories(path)
    fill(logs.create(PARTITIONS[0], LogConfig(), TOPIC_ID, NOW), 5)
    logs.close(now_ms=NOW)
    again = open_directories(path)
    again.logs[PARTITIONS[0]].assign_epoch_start(7, 5)
    return again


def test_idle_logs_are_not_synced(tmp_path: Path) -> None:
    """A broker with thousands of partitions stops as fast as the few allow that have changed."""
    logs = open_directories(tmp_path)
    for tp in PARTITIONS:
        fill(logs.create(tp, LogConfig(), TOPIC_ID, NOW), 5)
    logs.close(now_ms=NOW)
    again = open_directories(tmp_path)
    with watching() as syncs:
        again.close(now_ms=NOW)
    assert of_partitions(syncs.asked) == []
    third = open_directories(tmp_path)
    fill(third.logs[PARTITIONS[1]], 1)
    with watching() as syncs:
        third.close(now_ms=NOW)
    assert {it.split("/")[0] for it in of_partitions(syncs.asked)} == {"t-1"}
    last = open_directories(tmp_path)
    assert last.clean_start
    assert [len(read_all(last.logs[tp])) for tp in PARTITIONS] == [5, 6, 5]
    last.close(now_ms=NOW)


def test_a_new_leader_epoch_alone_syncs_no_segment(tmp_path: Path) -> None:
    """Each restart of a broker gives every partition that it leads again a new epoch."""
    again = idle_with_a_new_epoch(tmp_path)
    with watching() as syncs:
        again.close(now_ms=NOW)
    assert of_partitions(syncs.asked) == ["t-0", "t-0/leader-epoch-checkpoint"]


@pytest.mark.parametrize("change", ["truncate", "delete records", "roll"])
def test_segments_changed_without_a_record_are_synced(tmp_path: Path, change: str) -> None:
    """No record is unflushed, and yet the files of the segments differ from what is durable."""
    logs = open_directories(tmp_path)
    log = logs.create(PARTITIONS[0], LogConfig(), TOPIC_ID, NOW)
    fill(log, 5)
    if change != "delete records":
        log.flush(now_ms=NOW)
    log.advance_high_watermark(5)
    match change:
        case "truncate":
            logs.truncate(PARTITIONS[0], 3, now_ms=NOW)
        case "delete records":
            log.delete_records_before(5)
        case "roll":
            log.roll(NOW)
    assert log.recovery_point == log.log_end_offset
    name = f"{log.active.base_offset:020}.log"
    with watching() as syncs:
        logs.close(now_ms=NOW)
    assert f"t-0/{name}" in of_partitions(syncs.asked)


class SharedCommits:
    """A disk whose syncs are done once so many wait, as a journal commits them together."""

    def __init__(self, together: int) -> None:
        self._waiting = threading.Barrier(together)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, fd: int, /) -> None:
        if Path(f"/proc/self/fd/{fd}").readlink().suffix == ".log":
            self._waiting.wait(seconds(ANSWER))
        os.fsync(fd)


@contextmanager
def syncing_together(number: int) -> Iterator[None]:
    before = files.system
    files.system = SharedCommits(number)
    try:
        yield
    finally:
        files.system = before


@pytest.mark.parametrize("directories", [1, 3])
def test_logs_are_flushed_at_once(tmp_path: Path, directories: int) -> None:
    """Several of one directory, whatever its number of threads, and all directories."""
    paths = [tmp_path / f"{number}" for number in range(directories)]
    logs = LogDirectories.take(paths)
    logs.claim(broker_id=1, cluster_id=CLUSTER)
    for number in range(3):
        fill(logs.create(TopicPartition("t", number), LogConfig(), TOPIC_ID, NOW), 1)
    with syncing_together(3):
        logs.close(now_ms=NOW, threads=1)
    assert [(path / ".kafka_cleanshutdown").exists() for path in paths] == [True] * directories


def without_power(disk: Disk, root: Path) -> None:
    """Leave what is on the device, and nothing else, below ``root``."""
    machine = Machine()
    for effect in disk.effects:
        machine.apply(effect)
    write_tree(machine.image(Loss.NOTHING_BACK), root)


@pytest.mark.parametrize("rolled", [False, True])
def test_trimmed_segments_are_synced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rolled: bool
) -> None:
    """All records were flushed before: zeros behind them would be no batches to the next start."""
    config = LogConfig(preallocate=True, segment_bytes=4000, index_interval_bytes=10)
    (tmp_path / "before").mkdir()
    with using(Disk(tmp_path / "before")) as disk:
        logs = open_directories(tmp_path / "before" / "data", config=config)
        log = logs.create(PARTITIONS[0], config, TOPIC_ID, NOW)
        fill(log, 4)
        log.flush(now_ms=NOW)
        if rolled:
            log.roll(NOW)
        fill(log, int(rolled))
        logs.close(now_ms=NOW)
    without_power(disk, tmp_path / "after")
    logs = open_directories(tmp_path / "after" / "data", config=config)
    assert logs.clean_start
    assert "does not match the log" not in caplog.text
    assert read_all(logs.logs[PARTITIONS[0]]) == list(range(4 + rolled))
    logs.close(now_ms=NOW)


def test_a_rolled_segment_keeps_its_largest_timestamp(tmp_path: Path) -> None:
    """All of it was flushed before the roll, which ends its time index."""
    (tmp_path / "before").mkdir()
    with using(Disk(tmp_path / "before")) as disk:
        logs = open_directories(tmp_path / "before" / "data")
        log = logs.create(PARTITIONS[0], LogConfig(), TOPIC_ID, NOW)
        fill(log, 4)
        log.flush(now_ms=NOW)
        log.roll(NOW)
        logs.close(now_ms=NOW)
    without_power(disk, tmp_path / "after")
    logs = open_directories(tmp_path / "after" / "data")
    assert logs.clean_start
    assert logs.logs[PARTITIONS[0]].segments[0].max_timestamp == NOW + 3
    logs.close(now_ms=NOW)


@pytest.mark.parametrize("failed", [False, True])
def test_plans_that_did_not_run_are_made_up_at_the_stop(tmp_path: Path, failed: bool) -> None:
    """A plan is dropped where its flush is cancelled, and fails where no descriptor is left."""
    (tmp_path / "before").mkdir()
    with using(Disk(tmp_path / "before")) as disk:
        logs = open_directories(tmp_path / "before" / "data")
        log = logs.create(PARTITIONS[0], LogConfig(), TOPIC_ID, NOW)
        fill(log, 4)
        if failed:
            disk.fail("open", errno.EMFILE, path="partition.metadata", times=1)
            with pytest.raises(KafkaError):
                log.flush(now_ms=NOW)
            log.flush(now_ms=NOW)
        else:
            log.flush_plan()
        logs.close(now_ms=NOW)
    without_power(disk, tmp_path / "after")
    logs = open_directories(tmp_path / "after" / "data")
    assert logs.clean_start
    found = logs.logs[PARTITIONS[0]]
    assert (found.topic_id, read_all(found)) == (TOPIC_ID, [0, 1, 2, 3])
    logs.close(now_ms=NOW)


def test_an_idle_log_whose_flush_was_cancelled_is_synced(tmp_path: Path) -> None:
    """Nothing but its leader epoch is new, as when a change of the ISR flushes it."""
    again = idle_with_a_new_epoch(tmp_path)
    again.logs[PARTITIONS[0]].flush_plan()
    with watching() as syncs:
        again.close(now_ms=NOW)
    assert of_partitions(syncs.asked) == ["t-0", "t-0/leader-epoch-checkpoint"]


def test_a_sync_that_failed_after_its_flush_was_cancelled_leaves_no_marker(tmp_path: Path) -> None:
    """The next sync of the file would succeed, though the pages may be gone."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        log = logs.create(PARTITIONS[0], LogConfig(), TOPIC_ID, NOW)
        fill(log, 4)
        disk.fail("fsync", errno.EIO, path=".log", times=1)
        log.flush_plan().run()
        logs.close(now_ms=NOW)
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("but", [1, 6])
def test_a_stop_needs_no_descriptor_for_each_log_that_it_flushes_at_once(
    tmp_path: Path, but: int
) -> None:
    """A broker that has none left for its segments still stops cleanly."""
    paths = [tmp_path / f"{number}" for number in range(3)]
    logs = open_directories(*paths)
    for number in range(60):
        fill(logs.create(TopicPartition("t", number), LogConfig(), TOPIC_ID, NOW), 2)
    with none_left(but=but):
        logs.close(now_ms=NOW)
    assert [(path / ".kafka_cleanshutdown").exists() for path in paths] == [True] * 3
    again = open_directories(*paths)
    assert all(read_all(log) == [0, 1] for log in again.logs.values())
    again.close(now_ms=NOW)
