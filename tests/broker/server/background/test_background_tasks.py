"""Background work, seen in what it leaves on disk."""

import asyncio
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas_broker.log.checkpoints import parse_offsets
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.directory import DirectoryState
from barnabas_broker.log.names import HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.removals import Work
from barnabas_broker.server.background import background_tasks, heap
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import cooperative_scheduler
from barnabas_broker.server.transport.buffers import BufferPool
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.log.samples import NOW, fill, housekeep, open_directories
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import ANSWER, seconds, wait_for

T0 = TopicPartition("t", 0)
OLD = build_batch([(1000, None, b"x" * 200, ())])


@pytest.fixture(autouse=True)
def fast_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for work every 20 ms instead of every second."""
    monkeypatch.setattr(background_tasks, "TICK_MS", 20)


def wait_until(condition: "threading.Event") -> None:
    """Wait for what the broker's own thread will do."""
    assert condition.wait(seconds(ANSWER))


def on_flush(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a flush of records has been taken note of; files beside them are flushed, too."""
    flushed = threading.Event()
    original = PartitionLog.flushed

    def noted(self: PartitionLog, *args: object, **more: object) -> None:
        original(self, *args, **more)  # type: ignore[arg-type]
        if self.recovery_point > 0:
            flushed.set()

    monkeypatch.setattr(PartitionLog, "flushed", noted)
    return flushed


@pytest.mark.parametrize(("name", "value"), [("flush_messages", "2"), ("flush_ms", "1")])
def test_flushes_happen_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """By count or by time, the recovery point follows the log end without a shutdown."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", **{name: value})  # type: ignore[arg-type]
        flushed = on_flush(monkeypatch)
        wire.produce("t", OLD)
        wire.produce("t", OLD)
        wait_until(flushed)
        assert node.broker.logs.logs[T0].recovery_point > 0


@pytest.mark.parametrize(
    "settings",
    [
        {"log.flush.interval.messages": "2"},
        {"log.flush.scheduler.interval.ms": "10"},
        {"log.flush.scheduler.interval.ms": "10", "log.flush.interval.ms": "1"},
    ],
    ids=["messages", "scheduler", "scheduler and age"],
)
def test_the_brokers_settings_flush_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]
) -> None:
    """The scheduler's interval is how often flushes are looked for, and the default of the age."""
    monkeypatch.setattr(background_tasks, "TICK_MS", 3_600_000)
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        flushed = on_flush(monkeypatch)
        wire.produce("t", OLD)
        wire.produce("t", OLD)
        wait_until(flushed)
        assert node.broker.logs.logs[T0].recovery_point > 0


def test_retention_deletes_old_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By time: the log start moves, the files go after file.delete.delay.ms."""
    deleted = threading.Event()
    original = background_tasks.BackgroundTasks._retain

    def gone() -> bool:
        starts_later = node.broker.logs.logs[T0].log_start_offset > 0
        return starts_later and not list(tmp_path.glob("t-0/*.deleted"))

    async def noted(self: background_tasks.BackgroundTasks) -> None:
        await original(self)
        if gone():
            deleted.set()

    monkeypatch.setattr(background_tasks.BackgroundTasks, "_retain", noted)
    settings = {"log.retention.check.interval.ms": "20"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", retention_ms="1000", file_delete_delay_ms="1")
        wire.produce("t", OLD)
        wait_until(deleted)
        assert wire.fetch("t", 1).log_start_offset == 1
        assert not (tmp_path / "t-0" / f"{0:020}.log").exists()


def test_checkpoints_are_written_while_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill the high watermark is found where the last checkpoint left it."""
    written = threading.Event()
    original = background_tasks.BackgroundTasks._checkpoint

    def checkpointed() -> bool:
        marks = parse_offsets((tmp_path / "replication-offset-checkpoint").read_bytes())
        return marks.get(T0) == 1

    async def noted(self: background_tasks.BackgroundTasks) -> None:
        await original(self)
        if checkpointed():
            written.set()

    monkeypatch.setattr(background_tasks.BackgroundTasks, "_checkpoint", noted)
    settings = {"log.flush.offset.checkpoint.interval.ms": "20"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wire.produce("t", OLD)
        wait_until(written)


def on_disk(checkpoint: Path) -> int:
    """The offset that a checkpoint file has of the partition; 0 without a file."""
    return parse_offsets(checkpoint.read_bytes()).get(T0, 0) if checkpoint.exists() else 0


def test_recovery_points_are_written_soon_after_a_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is killed in its first minute does not scan what it has flushed already."""
    monkeypatch.setattr(background_tasks, "RECOVERY_POINTS_MS", 20)
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", flush_messages="1")
        wire.produce("t", OLD)
        point = wait_for(
            "a recovery point on disk",
            lambda: on_disk(tmp_path / RECOVERY_POINT_CHECKPOINT),
        )
        assert point == node.broker.logs.logs[T0].recovery_point == 1


def test_high_watermarks_are_written_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At an interval of their own, without the other checkpoints and only where they moved."""
    written = threading.Event()
    original = DirectoryState.write_marks

    def noted(self: DirectoryState, marks: Mapping[TopicPartition, int]) -> None:
        original(self, marks)
        if marks.get(T0) == 1:
            written.set()

    monkeypatch.setattr(DirectoryState, "write_marks", noted)
    settings = {"replica.high.watermark.checkpoint.interval.ms": "20"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wire.produce("t", OLD)
        wait_until(written)
        assert parse_offsets((tmp_path / HIGH_WATERMARK_CHECKPOINT).read_bytes())[T0] == 1


def test_memory_is_given_back_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the receive buffers that nobody needed meanwhile, then the pages of the heap."""
    monkeypatch.setattr(background_tasks, "GIVE_BACK_MS", 20)
    dropped, trimmed = threading.Event(), threading.Event()
    drop, trim = BufferPool.drop_unused, heap.trim

    def noted_drop(self: BufferPool) -> None:
        drop(self)
        dropped.set()

    def noted_trim() -> None:
        trim()
        if dropped.is_set():
            trimmed.set()

    monkeypatch.setattr(BufferPool, "drop_unused", noted_drop)
    monkeypatch.setattr(heap, "trim", noted_trim)
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wait_until(trimmed)
        wire.produce("t", OLD)


def test_room_is_looked_for_before_the_first_records_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is started on a full disk takes nothing, not even in its first second."""
    monkeypatch.setattr(background_tasks, "TICK_MS", 3_600_000)
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        assert wire.produce("t", OLD).error_code == ErrorCode.NONE
    without_room = {
        "barnabas.log.dirs.min.free.bytes": str(1 << 60),
        "barnabas.log.dirs.resume.bytes": str(1 << 60),
    }
    with running_node(tmp_path, without_room) as node, Wire(port_of(node)) as wire:
        assert wire.produce("t", OLD).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_room_is_looked_for_while_another_volume_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory takes no more records than its own volume has room for, whatever others do."""
    hangs, full = tmp_path / "hangs", tmp_path / "full"
    asked, answer = threading.Event(), threading.Event()

    def usage(path: Path) -> SimpleNamespace:
        if path == hangs:
            asked.set()
            answer.wait()
        return SimpleNamespace(free=0 if path == full else 1 << 40)

    given = {"log.dirs": f"{hangs},{full}", "barnabas.log.dirs.min.free.bytes": "1"}
    with running_node(tmp_path, given) as node:
        monkeypatch.setattr(shutil, "disk_usage", usage)
        try:
            wait_until(asked)
            wait_for("a full directory", lambda: not node.broker.logs.all_writable)
        finally:
            answer.set()


def test_retention_that_fails_for_one_log_is_done_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error, and one of the coordination of files, is of one partition."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", partitions=3)
        done = []

        def retain(log: PartitionLog, now_ms: int) -> list[Path]:
            done.append(log.tp)
            if log.tp == T0:
                raise ValueError("a defect")
            return []

        monkeypatch.setattr(PartitionLog, "delete_old_segments", retain)
        housekeep(node.broker.logs, 0)
        assert {it.partition for it in done if it.topic == "t"} == {0, 1, 2}


def test_clients_have_their_turn_while_retention_goes_through_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ten thousand logs it takes a second, for which no client is to wait."""
    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", 0)
    iterations = 0
    seen: list[int] = []

    def retain(_log: PartitionLog, _now_ms: int) -> list[Path]:
        seen.append(iterations)
        return []

    async def retained(node: BrokerServer) -> None:
        def count() -> None:
            nonlocal iterations
            iterations += 1
            counting[0] = loop.call_soon(count)

        loop = asyncio.get_running_loop()
        counting = [loop.call_soon(count)]
        assert node._background is not None
        await node._background._retain()
        counting[0].cancel()

    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", partitions=3)
        monkeypatch.setattr(PartitionLog, "delete_old_segments", retain)
        loop = node.broker.controller._loop
        asyncio.run_coroutine_threadsafe(retained(node), loop).result(seconds(ANSWER))
    assert len(seen) >= 3
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("turn", ["_remove_due", "_retain", "_checkpoint", "_checkpoint_marks"])
def test_work_that_fails_for_one_file_is_done_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: str
) -> None:
    """A directory that cannot be removed or written holds back no other one."""
    done = []

    def fails() -> None:
        done.append("failed")
        raise ValueError("a defect")

    works = [fails, lambda: done.append("first"), lambda: done.append("second")]

    def run_all(_logs: LogDirectories, _now_ms: int, *, run: Callable[[Work], None]) -> None:
        for work in works:
            run(work)

    with running_node(tmp_path) as node:
        assert node._background is not None
        monkeypatch.setattr(LogDirectories, "remove_due", run_all)
        monkeypatch.setattr(LogDirectories, "checkpoint_work", lambda _: works)
        monkeypatch.setattr(LogDirectories, "mark_work", lambda _: works)
        work = getattr(node._background, turn)()
        loop = node.broker.controller._loop
        asyncio.run_coroutine_threadsafe(work, loop).result(seconds(ANSWER))
        assert {"failed", "first", "second"} <= set(done)


def test_nothing_begins_after_the_stop(tmp_path: Path) -> None:
    """Records come until clients are closed, and the logs' own close may find a full disk."""
    logs = open_directories(tmp_path)
    log = logs.create(T0, LogConfig(segment_bytes=200, retention_bytes=200), None, NOW)
    fill(log, 6)
    segments = len(log.segments)

    async def stop() -> None:
        async def watch() -> None:
            """Nobody is there."""

        tasks = background_tasks.BackgroundTasks(
            logs,
            watch_clients=watch,
            drop_unused=lambda: None,
            settings=lambda: BrokerSettings.from_mapping({}),
            clock_ms=lambda: NOW,
        )
        await tasks.stop()
        tasks.flush_soon(log)
        tasks.retain_soon()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others)

    asyncio.run(stop())
    assert len(log.segments) == segments
    assert log.recovery_point == 0
    logs.close(now_ms=NOW)
