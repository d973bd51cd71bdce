"""All log directories of a broker: whose they are, what is in them, and leaving them tidy."""

import errno
import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log import recovery_progress
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories, LogDirectoryError
from barnabas_broker.log.health import Finding, Reserve
from barnabas_broker.log.parallel import GivenUpError
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.recovery_progress import RecoveryProgress, SegmentScan
from barnabas_broker.log.removals import Work
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.descriptors import none_left
from tests.broker.log.disk import Disk, using
from tests.broker.log.samples import (
    CLUSTER,
    NOW,
    TOPIC_ID,
    TP,
    append,
    batch_of,
    fill,
    housekeep,
    open_directories,
    read_all,
)


def test_a_new_directory_is_set_up(tmp_path: Path) -> None:
    """Created with its parents, locked, and marked with broker and cluster."""
    directory = tmp_path / "deep" / "logs"
    logs = open_directories(directory)
    assert (directory / "meta.properties").read_text() == (
        f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n"
    )
    assert (directory / ".lock").exists()
    assert logs.clean_start
    logs.close()


def test_a_log_may_be_truncated_until_it_is_known_to_have_its_end(tmp_path: Path) -> None:
    """After a crash; a stop in order before that leaves no marker, and one after it does."""
    logs = open_directories(tmp_path)
    fill(logs.create(TP, LogConfig(), TOPIC_ID, NOW), 5)
    assert not logs.find_truncated({TP: True})
    logs.close(clean=False)
    for _ in range(2):
        logs = open_directories(tmp_path)
        assert logs.find_truncated({TP: False})
        assert logs.truncated_logs.partitions == {TP}
        logs.close()
    logs = open_directories(tmp_path)
    assert logs.find_truncated({TP: False})
    logs.truncated_logs.trust(TP)
    logs.close()
    logs = open_directories(tmp_path)
    assert not logs.find_truncated({TP: False})
    logs.close()


def test_a_log_that_is_gone_is_doubted_where_others_count_on_it(tmp_path: Path) -> None:
    """A directory that is new has no marker and nothing to lose; one that lost all has."""
    logs = open_directories(tmp_path)
    assert not logs.find_truncated({TP: False})
    assert logs.find_truncated({TP: True})
    logs.create(TP, LogConfig(), TOPIC_ID, NOW)
    logs.delete(TP, NOW)
    assert not logs.truncated_logs.partitions
    logs.close()


def test_partitions_survive_a_clean_restart(tmp_path: Path) -> None:
    """Data, high watermark, log start and topic id; the marker is consumed at once."""
    logs = open_directories(tmp_path)
    log = logs.create(TP, LogConfig(), TOPIC_ID, NOW)
    fill(log, 5)
    log.delete_records_before(2)
    logs.close(broker_epoch=25)
    marker = tmp_path / ".kafka_cleanshutdown"
    assert json.loads(marker.read_text()) == {"version": 0, "brokerEpoch": 25}
    again = open_directories(tmp_path)
    assert not marker.exists()
    assert again.clean_start
    log = again.logs[TP]
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 5, 5)
    assert log.topic_id == TOPIC_ID
    assert read_all(log) == [2, 3, 4]
    again.close()


def test_checkpoints_are_kafkas(tmp_path: Path) -> None:
    """One line per partition; a log start only where no segment says it."""
    logs = open_directories(tmp_path)
    log = logs.create(TP, LogConfig(), None, NOW)
    logs.create(TopicPartition("quiet", 0), LogConfig(), None, NOW)
    fill(log, 5)
    log.delete_records_before(2)
    log.flush(now_ms=NOW)
    logs.checkpoint()
    texts = {
        name: sorted((tmp_path / name).read_text().splitlines())
        for name in (
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
            "log-start-offset-checkpoint",
        )
    }
    assert texts == {
        "recovery-point-offset-checkpoint": ["0", "2", "orders 3 5", "quiet 0 0"],
        "replication-offset-checkpoint": ["0", "2", "orders 3 5", "quiet 0 0"],
        "log-start-offset-checkpoint": ["0", "1", "orders 3 2"],
    }
    logs.close()


def test_without_the_marker_the_start_is_unclean(tmp_path: Path) -> None:
    """After a kill the logs are scanned, whatever the checkpoints say."""
    logs = open_directories(tmp_path)
    fill(logs.create(TP, LogConfig(), None, NOW), 5)
    logs.checkpoint()
    logs.close(clean=False)
    with (tmp_path / "orders-3" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn batch")
    again = open_directories(tmp_path)
    assert not again.clean_start
    assert again.logs[TP].log_end_offset == 5
    again.close()


def test_only_segments_past_the_recovery_point_are_scanned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After a kill, as in Kafka; how much that is is known before the first is read."""
    caplog.set_level(logging.INFO)
    logs = open_directories(tmp_path)
    log = logs.create(TP, LogConfig(segment_bytes=1000), None, NOW)
    while len(log.segments) < 8:
        append(log, batch_of(size=300))
    log.flush(now_ms=NOW)
    logs.checkpoint()
    flushed = log.active.base_offset
    while len(log.segments) < 10:
        append(log, batch_of(size=300))
    last = [each.size for each in log.segments if each.base_offset >= flushed]
    logs.close(clean=False)

    again = LogDirectories.take([tmp_path])
    again.claim(broker_id=1, cluster_id=CLUSTER)
    progress = RecoveryProgress(lambda: 0.0)
    caplog.clear()
    again.load(lambda _: LogConfig(segment_bytes=1000), now_ms=NOW, progress=progress)
    again.close()
    assert (
        "Attempting recovery for all 1 logs in "
        f"{tmp_path} since no clean shutdown file was found: "
        f"{len(last)} unflushed segments, {sum(last)} bytes to scan"
    ) in caplog.messages
    (directory,) = progress.directories
    assert directory.segments_done == directory.segments == len(last) == 3
    assert directory.size_bytes_done == directory.size_bytes == sum(last)
    assert sum("scanning segment" in line for line in caplog.messages) == len(last)


def test_a_segment_that_is_scanned_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop does not wait for the end of a log that takes minutes; the next start scans it."""
    logs = open_directories(tmp_path)
    fill(logs.create(TP, LogConfig(), None, NOW), 5)
    logs.close(clean=False)
    again = LogDirectories.take([tmp_path])
    again.claim(broker_id=1, cluster_id=CLUSTER)
    progress = RecoveryProgress(lambda: 0.0)
    positions: list[int] = []

    def advance(scan: SegmentScan, position: int) -> None:
        positions.append(position)
        progress.given_up.set()
        advanced(scan, position)

    advanced = SegmentScan.advance
    monkeypatch.setattr(SegmentScan, "advance", advance)
    monkeypatch.setattr(recovery_progress, "SCAN_STEP_BYTES", 1)
    with pytest.raises(GivenUpError):
        again.load(lambda _: LogConfig(), now_ms=NOW, progress=progress)
    assert len(positions) == 1
    again.close(clean=False)
    monkeypatch.undo()
    found = open_directories(tmp_path)
    assert found.logs[TP].log_end_offset == 5
    found.close()


def test_damaged_checkpoints_only_cost_time(tmp_path: Path) -> None:
    """They save work; without them everything is looked at."""
    logs = open_directories(tmp_path)
    fill(logs.create(TP, LogConfig(), None, NOW), 5)
    logs.close()
    for path in tmp_path.glob("*-checkpoint"):
        path.write_bytes(b"\0garbage")
    again = open_directories(tmp_path)
    assert again.logs[TP].log_end_offset == 5
    assert again.logs[TP].high_watermark == 0
    again.close()


# --- whose it is -------------------------------------------------------------------------------


def test_a_second_broker_in_this_process_is_kept_out(tmp_path: Path) -> None:
    """Two embedded brokers of one test suite must not share a directory either."""
    logs = open_directories(tmp_path)
    with pytest.raises(LogDirectoryError, match="is in use: another broker holds the lock"):
        open_directories(tmp_path)
    logs.close()
    open_directories(tmp_path).close()


def test_a_second_broker_process_is_kept_out(tmp_path: Path) -> None:
    """And it says so in one line; when the first is gone the lock is free."""
    logs = open_directories(tmp_path)
    program = textwrap.dedent(f"""
        from barnabas_broker.log.directories import LogDirectories, LogDirectoryError
        try:
            LogDirectories.take([{str(tmp_path)!r}]).close(clean=False)
        except LogDirectoryError as error:
            print(error)
    """)
    command = [sys.executable, "-c", program]
    refused = subprocess.run(command, capture_output=True, text=True, check=True)
    assert refused.stdout.count("\n") == 1
    assert f"log directory {tmp_path} is in use" in refused.stdout
    logs.close()
    admitted = subprocess.run(command, capture_output=True, text=True, check=True)
    assert admitted.stdout == ""


def test_another_clusters_directory_is_refused(tmp_path: Path) -> None:
    """Both cluster ids are named, and nothing is touched."""
    open_directories(tmp_path).close()
    with pytest.raises(LogDirectoryError) as caught:
        open_directories(tmp_path, cluster_id="anotherCluster00000000")
    assert CLUSTER in str(caught.value)
    assert "anotherCluster00000000" in str(caught.value)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_another_brokers_directory_is_refused(tmp_path: Path) -> None:
    """Both broker ids are named."""
    open_directories(tmp_path).close()
    with pytest.raises(LogDirectoryError, match=r"broker 1 .* this is broker 2"):
        open_directories(tmp_path, broker_id=2)
    open_directories(tmp_path).close()


def test_a_directory_that_cannot_be_made_gives_one_line(tmp_path: Path) -> None:
    """Path and reason; a file in the way stands for every path that takes no directory."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LogDirectoryError) as caught:
        open_directories(tmp_path / "file" / "logs")
    message = str(caught.value)
    assert message == f"no usable log directory ({tmp_path}/file/logs: Not a directory)"


def test_the_last_directory_that_fails_at_the_start_gives_one_line(tmp_path: Path) -> None:
    """Also where a stop follows, which has no directory to close."""
    data = tmp_path / "data"
    logs = open_directories(data)
    logs.create(TP, LogConfig(), TOPIC_ID, NOW)
    logs.close(now_ms=NOW)
    with using(Disk(tmp_path)) as disk:
        disk.fail("open", errno.EIO, path=".log")
        logs = LogDirectories.take((data,))
        logs.claim(broker_id=1, cluster_id=CLUSTER)
        with pytest.raises(LogDirectoryError, match=r"no usable log directory .*: Input/output"):
            logs.load(lambda _: LogConfig(), now_ms=NOW)
        logs.close(clean=False)


def test_one_bad_directory_does_not_stop_the_others(tmp_path: Path) -> None:
    """It is offline, with its reason."""
    (tmp_path / "file").write_text("in the way")
    bad, good = tmp_path / "file" / "logs", tmp_path / "logs"
    logs = open_directories(bad, good)
    assert logs.offline == {bad: "Not a directory"}
    logs.create(TP, LogConfig(), None, NOW)
    assert logs.logs[TP].directory.parent == good
    logs.close()


def test_too_few_descriptors_are_no_failure_of_a_disk(tmp_path: Path) -> None:
    """Wherever a start runs out of them it is refused: no directory is taken to be offline."""
    paths = tmp_path / "a", tmp_path / "b"
    logs = open_directories(*paths)
    partitions = [TopicPartition("t", number) for number in range(4)]
    for tp in partitions:
        fill(logs.create(tp, LogConfig(), None, NOW), 5)
    kept = {tp: read_all(log) for tp, log in logs.logs.items()}
    logs.close()
    refused: list[str] = []
    for but in range(1, 40):
        try:
            with none_left(but=but):
                logs = open_directories(*paths)
        except LogDirectoryError as error:
            refused.append(str(error))
            continue
        assert (set(logs.logs), logs.offline) == (set(partitions), {})
        assert logs.clean_start  # The refused starts have not used up that the stop was clean.
        assert {tp: read_all(log) for tp, log in logs.logs.items()} == kept
        logs.close()
        break
    assert len(refused) > 4
    assert all(os.strerror(errno.EMFILE) in reason for reason in refused)


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    """Nobody can tell which one is right."""
    for name in ("a", "b"):
        logs = open_directories(tmp_path / name)
        logs.create(TP, LogConfig(), None, NOW)
        logs.close()
    with pytest.raises(LogDirectoryError, match="orders-3 lies in both"):
        open_directories(tmp_path / "a", tmp_path / "b")
    open_directories(tmp_path / "a").close()


def test_stored_ids_are_known_before_the_claim(tmp_path: Path) -> None:
    """A broker without configured ids takes over those its directories were written with."""
    logs = LogDirectories.take([tmp_path / "a", tmp_path / "b"])
    assert (logs.stored_broker_id, logs.stored_cluster_id) == (None, None)
    assert logs.first == tmp_path / "a"
    logs.claim(broker_id=7, cluster_id=CLUSTER)
    logs.close()
    again = LogDirectories.take([tmp_path / "new", tmp_path / "b"])
    assert (again.stored_broker_id, again.stored_cluster_id) == (7, CLUSTER)
    again.close(clean=False)


def test_a_refused_claim_touches_no_directory(tmp_path: Path) -> None:
    """The markers of our own directories are not consumed for a start that cannot be."""
    open_directories(tmp_path / "ours").close()
    open_directories(tmp_path / "theirs", broker_id=2).close()
    with pytest.raises(LogDirectoryError, match="broker 2"):
        open_directories(tmp_path / "ours", tmp_path / "theirs")
    assert (tmp_path / "ours" / ".kafka_cleanshutdown").exists()


def test_strange_directories_are_left_alone(tmp_path: Path) -> None:
    """lost+found of a mount, and replicas Apache was moving, are not partitions."""
    future = "orders-3.0123456789abcdef0123456789abcdef-future"
    for name in ("lost+found", future, "remote-log-index-cache"):
        (tmp_path / name).mkdir()
    logs = open_directories(tmp_path)
    assert logs.logs == {}
    logs.close()
    assert (tmp_path / future).exists()


# --- partitions --------------------------------------------------------------------------------


def test_partitions_go_where_the_fewest_are(tmp_path: Path) -> None:
    """Directories fill evenly."""
    logs = open_directories(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    for number in range(7):
        logs.create(TopicPartition("t", number), LogConfig(), None, NOW)
    homes = Counter(logs.logs[tp].directory.parent.name for tp in logs.logs)
    assert sorted(homes.values()) == [2, 2, 3]
    logs.close()


def test_creating_twice_gives_the_same_log(tmp_path: Path) -> None:
    """A repeated command of the controller changes nothing."""
    logs = open_directories(tmp_path)
    log = logs.create(TP, LogConfig(), TOPIC_ID, NOW)
    assert logs.create(TP, LogConfig(), TOPIC_ID, NOW) is log
    logs.close()


def test_a_deleted_partition_makes_room_for_a_new_one(tmp_path: Path) -> None:
    """The old directory is renamed at once and removed after the delay."""
    logs = open_directories(tmp_path)
    log = logs.create(TP, LogConfig(file_delete_delay_ms=500), None, NOW)
    fill(log, 3)
    part = log.read(0, 1000, upper_bound=3)
    expected = part.read()
    logs.delete(TP, NOW)
    leaving = list(tmp_path.glob("orders-3.*-delete"))
    assert len(leaving) == 1
    assert logs.create(TP, LogConfig(), None, NOW).log_end_offset == 0
    housekeep(logs, NOW + 499)
    assert leaving[0].exists()
    housekeep(logs, NOW + 500)
    assert not leaving[0].exists()
    assert part.read() == expected
    logs.close()


def test_a_deletion_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    """A directory marked for deletion is never loaded again."""
    logs = open_directories(tmp_path)
    fill(logs.create(TP, LogConfig(), None, NOW), 3)
    logs.delete(TP, NOW)
    logs.close()
    again = open_directories(tmp_path)
    assert again.logs == {}
    housekeep(again, NOW)
    assert not list(tmp_path.glob("*-delete"))
    again.close()


def test_a_directory_that_takes_no_partition_is_a_storage_error(tmp_path: Path) -> None:
    """The topic's creation fails, the broker goes on."""
    logs = open_directories(tmp_path)
    (tmp_path / "orders-3").write_text("in the way")
    with pytest.raises(KafkaError, match="orders-3"):
        logs.create(TP, LogConfig(), None, NOW)
    logs.close()


def test_housekeeping_applies_retention_and_removes_files_later(tmp_path: Path) -> None:
    """The unlinking goes to whoever runs blocking work."""
    config = LogConfig(segment_bytes=400, retention_ms=1000, file_delete_delay_ms=60_000)
    logs = open_directories(tmp_path)
    log = logs.create(TP, config, None, NOW)
    fill(log, 9)
    work: list[Work] = []
    housekeep(logs, NOW + 5000, run=work.append)
    assert log.log_start_offset == 9
    assert work == []
    deleted = list((tmp_path / "orders-3").glob("*.deleted"))
    assert deleted
    housekeep(logs, NOW + 65_000, run=work.append)
    assert all(path.exists() for path in deleted)
    for removal in work:
        removal()
    assert not any(path.exists() for path in deleted)
    logs.close()


def test_the_volume_behind_a_directory(tmp_path: Path) -> None:
    """None of a directory that cannot be used, or is none of these."""
    logs = open_directories(tmp_path)
    volume = logs.volume(tmp_path)
    assert volume is not None
    assert volume.total_bytes > volume.usable_bytes > 0
    assert logs.volume(tmp_path / "other") is None
    logs.create(TP, LogConfig(), None, NOW).health.found(Finding.BROKEN, "Input/output error")
    assert logs.volume(tmp_path) is None
    logs.close()


def test_a_failed_log_leaves_no_clean_marker(tmp_path: Path) -> None:
    """What the device holds is not known: the next start has to look."""
    logs = open_directories(tmp_path)
    logs.create(TP, LogConfig(), None, NOW).health.found(Finding.BROKEN, "Input/output error")
    logs.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(("clean", "failing"), [(True, "close"), (True, "flush"), (False, "close")])
def test_a_log_that_cannot_be_closed_holds_back_no_other(
    tmp_path: Path,
    clean: bool,
    failing: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Other directories are marked as clean, and nobody holds a lock afterwards."""
    paths = [tmp_path / name for name in ("first", "bad", "last")]
    logs = LogDirectories.take(paths)
    logs.claim(broker_id=1, cluster_id=CLUSTER)
    homes = {}
    for index in range(3):
        logs.create(TopicPartition("t", index), LogConfig(), None, NOW)
        homes[index] = logs.home_of(TopicPartition("t", index)).path
    assert len({*homes.values()}) == 3
    real, closed = getattr(PartitionLog, failing), []

    def faulty(self: PartitionLog, *args: Any, **more: Any) -> Any:
        if self.tp.partition == 1:
            raise ZeroDivisionError("a defect")
        closed.append(self.tp.partition)
        return real(self, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(PartitionLog, failing, faulty)
        logs.close(clean=clean)
    assert {*closed} == {0, 2}
    assert "Closing of " in caplog.text
    assert "a defect" in caplog.text
    marked = {index for index in homes if (homes[index] / ".kafka_cleanshutdown").exists()}
    assert marked == ({0, 2} if clean else set())
    again = LogDirectories.take(paths)
    again.claim(broker_id=1, cluster_id=CLUSTER)
    again.close(clean=False)


def test_topics_are_loaded_with_their_own_settings(tmp_path: Path) -> None:
    """config_for is asked for each topic found."""
    logs = open_directories(tmp_path)
    logs.create(TP, LogConfig(), None, NOW)
    logs.close()
    own = LogConfig(segment_bytes=12345)
    again = LogDirectories.take([tmp_path])
    again.claim(broker_id=1, cluster_id=CLUSTER)
    again.load({"orders": own}.__getitem__, now_ms=NOW)
    assert again.logs[TP].config is own
    again.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_loading_can_be_given_up(tmp_path: Path, threads: int) -> None:
    """Before the next log; what is there is loaded by the next start."""
    logs = open_directories(tmp_path)
    for index in range(9):
        logs.create(TopicPartition("orders", index), LogConfig(), None, NOW)
    logs.close()
    again = LogDirectories.take([tmp_path])
    again.claim(broker_id=1, cluster_id=CLUSTER)
    answers = iter([False, False])

    class AfterTwo(threading.Event):
        def is_set(self) -> bool:
            return next(answers, True)

    progress = RecoveryProgress(lambda: 0.0)
    progress.given_up = AfterTwo()
    with pytest.raises(GivenUpError):
        again.load(lambda _: LogConfig(), now_ms=NOW, threads=threads, progress=progress)
    again.close(clean=False)
    assert len(open_directories(tmp_path).logs) == 9


def test_due_removals_can_be_asked_for_alone(tmp_path: Path) -> None:
    """Often, and without the cost of asking every log about retention."""
    logs = open_directories(tmp_path)
    logs.create(TP, LogConfig(file_delete_delay_ms=500), None, NOW)
    logs.delete(TP, NOW)
    logs.remove_due(NOW + 499)
    assert list(tmp_path.glob("*-delete"))
    logs.remove_due(NOW + 500)
    assert not list(tmp_path.glob("*-delete"))
    logs.close()


def test_a_partition_that_cannot_be_renamed_stays(tmp_path: Path) -> None:
    """The error is the request's and the directory's: its files are not where they were put."""
    logs = open_directories(tmp_path)
    log = logs.create(TP, LogConfig(), None, NOW)
    fill(log, 2)
    moved = tmp_path / "elsewhere"
    log.directory.rename(moved)
    with pytest.raises(KafkaError, match="cannot rename orders-3"):
        logs.delete(TP, NOW)
    assert TP in logs.logs
    assert logs.has_offline
    moved.rename(log.directory)
    logs.close()


def test_a_stale_marker_is_not_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A marker put back beside a log that was written since: the torn tail is found and cut."""
    logs = open_directories(tmp_path / "data")
    log = logs.create(TP, LogConfig(), None, NOW)
    append(log, batch_of(3))
    logs.close(now_ms=NOW)
    marker = (tmp_path / "data" / ".kafka_cleanshutdown").read_bytes()
    logs = open_directories(tmp_path / "data")
    append(logs.logs[TP], batch_of(2))
    logs.close(clean=False)
    with (tmp_path / "data" / "orders-3" / f"{0:020d}.log").open("ab") as file:
        file.write(batch_of(2, offset=5)[:-3])
    (tmp_path / "data" / ".kafka_cleanshutdown").write_bytes(marker)
    again = open_directories(tmp_path / "data")
    assert "row M3" in caplog.text
    assert again.logs[TP].log_end_offset == 5
    assert append(again.logs[TP], batch_of()) == 5
    again.close(clean=False)


def test_a_new_partition_has_nothing_of_a_deleted_one(tmp_path: Path) -> None:
    """A recovery point and start noted for a deleted log would cut a new one of its name."""
    logs = open_directories(tmp_path / "data")
    log = logs.create(TP, LogConfig(), None, NOW)
    append(log, batch_of(9))
    log.delete_records_before(8)
    logs.checkpoint()
    logs.delete(TP, NOW)
    append(logs.create(TP, LogConfig(), None, NOW), batch_of(3))
    logs.close(clean=False)
    again = open_directories(tmp_path / "data")
    assert (again.logs[TP].log_start_offset, again.logs[TP].log_end_offset) == (0, 3)
    again.close(clean=False)


def test_a_truncation_takes_the_recovery_point_on_disk_back(tmp_path: Path) -> None:
    """What is appended after the cut was not synced, though its offsets had been."""
    logs = open_directories(tmp_path / "data")
    log = logs.create(TP, LogConfig(), None, NOW)
    fill(log, 6)
    log.flush(now_ms=NOW)
    logs.checkpoint()
    assert logs.truncate(TP, 2, now_ms=NOW)
    checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
    assert checkpoint.read_text() == "0\n1\norders 3 2\n"
    assert not logs.truncate(TP, 2, now_ms=NOW)
    logs.close(clean=False)


def test_nothing_is_cut_while_the_recovery_point_cannot_be_taken_back(tmp_path: Path) -> None:
    """After a power cut what is appended next would pass for synced."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        log = logs.create(TP, LogConfig(), None, NOW)
        fill(log, 6)
        log.flush(now_ms=NOW)
        logs.checkpoint()
        disk.fail("rename", errno.ENOSPC, path="recovery-point-offset-checkpoint.tmp")
        for cut in (logs.truncate, logs.truncate_fully_at):
            with pytest.raises(KafkaError, match="checkpoints"):
                cut(TP, 2, now_ms=NOW)
            assert (log.log_end_offset, log.recovery_point) == (6, 6)
        disk.repair()
        logs.checkpoint()
        checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
        assert checkpoint.read_text() == "0\n1\norders 3 6\n"
        assert logs.truncate(TP, 2, now_ms=NOW)
        logs.close(clean=False)


def test_the_recovery_point_is_back_before_anything_is_cut(tmp_path: Path) -> None:
    """And stays so where the cut ends half-way, until another one succeeds."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        log = logs.create(TP, LogConfig(), None, NOW)
        fill(log, 6)
        log.flush(now_ms=NOW)
        logs.checkpoint()
        disk.fail("ftruncate", errno.ENOSPC, path=".log")
        with pytest.raises(KafkaError):
            logs.truncate(TP, 2, now_ms=NOW)
        logs.checkpoint()
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            assert (tmp_path / "data" / name).read_text() == "0\n1\norders 3 2\n"
        disk.repair()
        log.health.found(Finding.ROOM, "")
        assert logs.truncate(TP, 2, now_ms=NOW)
        fill(log, 3)
        log.flush(now_ms=NOW)
        logs.checkpoint()
        checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
        assert checkpoint.read_text() == "0\n1\norders 3 5\n"
        logs.close(clean=False)


def test_a_new_partition_is_refused_while_the_checkpoints_speak_of_a_deleted_one(
    tmp_path: Path,
) -> None:
    """Its recovery point would have bytes of the new log trusted that were never synced."""
    with using(Disk(tmp_path)) as disk:
        logs = open_directories(tmp_path / "data")
        fill(logs.create(TP, LogConfig(), None, NOW), 6)
        logs.checkpoint()
        logs.delete(TP, NOW)
        disk.fail("rename", errno.ENOSPC, path="recovery-point-offset-checkpoint.tmp")
        for _ in range(2):
            with pytest.raises(KafkaError, match="checkpoints"):
                logs.create(TP, LogConfig(), None, NOW)
            for _path, probe in logs.probes(Reserve(keep=0, resume=0)):
                probe()
        assert TP not in logs.logs
        logs.close(clean=False)


def test_a_partition_that_was_deleted_meanwhile_is_not_cut(tmp_path: Path) -> None:
    """Its cut, or its cleaning, waited for a thread."""
    logs = open_directories(tmp_path)
    for cut in (logs.truncate, logs.truncate_fully_at):
        with pytest.raises(KafkaError) as refused:
            cut(TP, 2, now_ms=NOW)
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    logs.checkpoint_beside(TP)
    logs.close()
