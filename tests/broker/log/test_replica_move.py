"""A move between log directories, stopped at every single point by a kill and by a power cut."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.replica_move import ReplicaMove, Stage
from tests.broker.log.disk import Disk, using
from tests.broker.log.history import (
    SMALL,
    TOPIC_A,
    A,
    Contents,
    check_appends,
    check_derived,
    contents_of,
)
from tests.broker.log.images import Loss, Machine, write_tree
from tests.broker.log.samples import (
    NOW,
    batch_of,
    housekeep,
    marker_of,
    open_directories,
    validated,
)

POWER: list[Loss] = [loss for loss in Loss if loss is not Loss.KILL]
LOG_START = 3


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of recoveries have much to say."""
    logger = logging.getLogger("barnabas_broker.log")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@dataclass(frozen=True)
class Moment:
    """After a step: how many effects there were, all records, and below which all are synced."""

    name: str
    position: int
    contents: Contents
    #: these, and what retention has taken
    known: Contents
    durable: int


@dataclass
class Played:
    """The disk of a move from ``one`` to ``two`` below its root, and what was true when."""

    disk: Disk
    moments: list[Moment] = field(default_factory=list)

    def note(self, name: str, log: PartitionLog) -> None:
        last = self.moments[-1] if self.moments else None
        contents = contents_of(log)
        self.moments.append(
            Moment(
                name,
                len(self.disk.effects),
                contents,
                {**(last.known if last else {}), **contents},
                # A record that counted once counts for ever, whatever copy serves.
                max(last.durable if last else 0, log.durable_offset),
            )
        )


def append(log: PartitionLog, count: int, *, producer: int = -1, sequence: int = 0) -> None:
    for number in range(count):
        who = (producer, 0, sequence + number) if producer >= 0 else (-1, -1, -1)
        data = validated(batch_of(timestamp=NOW + log.log_end_offset, producer=who, size=30))
        log.append_as_leader(data, leader_epoch=2, now_ms=NOW)
    log.advance_high_watermark(log.log_end_offset)


def commit(log: PartitionLog) -> None:
    """What group commit does before records count."""
    plan = log.commit_plan()
    plan.run()
    log.committed(plan)


def copy_all(move: ReplicaMove) -> None:
    while (part := move.next_part(400)) is not None:
        move.take(part, now_ms=NOW)


def play(disk: Disk, root: Path) -> Played:
    """One move with records before, in between and after each of its steps."""
    played = Played(disk)
    logs = open_directories(root / "one", root / "two", config=SMALL)
    log = logs.create(A, SMALL, TOPIC_A, NOW)
    source = logs.logs[A].directory.parent
    append(log, 8)
    append(log, 4, producer=7)
    log.append_as_leader(validated(batch_of(producer=(8, 0, 0), transactional=True)),
        leader_epoch=2, now_ms=NOW)  # fmt: skip
    log.append_as_leader(validated(marker_of(8, 0, commit=False)), leader_epoch=2, now_ms=NOW)
    log.advance_high_watermark(log.log_end_offset)
    log.delete_records_before(LOG_START)
    log.flush(now_ms=NOW)
    logs.checkpoint()
    played.note("before", log)
    target = logs.find(str(root / ("two" if source == root / "one" else "one")))
    assert target is not None
    move = logs.begin_move(A, target)
    move.open_copy(NOW)
    played.note("open", log)
    move.take(move.next_part(400), now_ms=NOW)  # type: ignore[arg-type]
    append(log, 5)
    commit(log)
    played.note("copy", log)
    copy_all(move)
    move.opened().flush(now_ms=NOW)
    played.note("sync", log)
    append(log, 2)
    commit(log)
    append(log, 1)
    played.note("append before install", log)
    move.install()
    played.note("install", log)
    append(log, 2, producer=7, sequence=4)
    commit(log)
    played.note("append before switch", log)
    assert move.try_switch(NOW)
    logs.switched(move)
    log = move.opened()
    played.note("switch", log)
    append(log, 3)
    played.note("append after switch", log)
    commit(log)
    played.note("commit after switch", log)
    append(log, 1)
    log.flush(now_ms=NOW)
    logs.checkpoint_work_of(move.target)()
    played.note("sync after switch", log)
    move.note_switched()
    played.note("note", log)
    append(log, 2)
    removed = move.retire()
    assert removed is not None
    move.release_source(removed)
    played.note("retire", log)
    move.forget()
    logs.checkpoint_work_of(move.home)()
    logs.ended(move, removed, NOW)
    played.note("forget", log)
    append(log, 2)
    commit(log)
    logs.remove_due(NOW + 100)
    played.note("after", log)
    logs.close(clean=False)
    return played


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


@pytest.fixture(scope="module")
def played(root: Path) -> Played:
    """One move, made once."""
    with using(Disk(root)) as disk:
        return play(disk, root)


def stops(played: Played, *, share: float = 1, seed: int = 0) -> Iterator[tuple[int, Machine]]:
    machine = Machine()
    picks = random.Random(seed)
    first = played.moments[0].position
    for position, effect in enumerate(played.disk.effects, start=1):
        machine.apply(effect)
        if position >= first and picks.random() < share:
            yield position, machine


def check(log: PartitionLog, before: Moment, after: Moment, *, power: bool) -> None:
    """Everything that counted is there, as it was, and nothing that was not appended."""
    found = contents_of(log)
    for base, data in found.items():
        assert after.known.get(base) == data, f"alien at {base}"
    start = log.segments[0].base_offset
    for base, data in before.contents.items():
        if base >= LOG_START and (not power or base < before.durable):
            assert found.get(base) == data, f"{base} is lost"
    assert start <= log.log_start_offset == LOG_START
    assert log.topic_id == TOPIC_A
    producers = log.producers.producers
    assert 7 in producers
    check_derived(log)
    check_appends(log)


def check_stop(
    played: Played, position: int, machine: Machine, root: Path, *, loss: Loss, names: int | None
) -> None:
    """Open what a stop left, twice, and finish the move if it is to go on."""
    around = [moment for moment in played.moments if moment.position <= position][-1:]
    later = [moment for moment in played.moments if moment.position >= position][:1]
    before, after = around[0], (later or around)[0]
    shutil.rmtree(root)
    write_tree(machine.image(loss, names), root)
    try:
        with using(Disk(root)):  # Its syncs cost nothing.
            logs = open_directories(root / "one", root / "two", config=SMALL)
            assert list(logs.logs) == [A]
            log = logs.logs[A]
            check(log, before, after, power=loss is not Loss.KILL)
            end = log.log_end_offset
            logs.close(clean=position % 2 == 0)
            logs = open_directories(root / "one", root / "two", config=SMALL)
            assert logs.logs[A].log_end_offset == end
            finish(logs)
            logs.close(clean=False)
    except BaseException as error:
        effect = played.disk.effects[position - 1]
        error.add_note(f"{loss.name}, names {names}, after {effect} ({position}), {before.name!r}")
        raise


def finish(logs: LogDirectories) -> None:
    """Go on from a copy that was left."""
    if A not in logs.unfinished:
        return
    target, found = logs.unfinished.pop(A)
    held = contents_of(logs.logs[A])
    move = logs.begin_move(A, target, found=found)
    move.open_copy(NOW)
    if not move.check_found():
        move.restart()
    copy_all(move)
    assert move.try_switch(NOW)
    logs.switched(move)
    assert (
        contents_of(logs.logs[A]).items()
        >= {base: data for base, data in held.items() if base >= LOG_START}.items()
    )


def test_the_move_is_made(played: Played) -> None:
    """The script gets to its end, or the other tests would test nothing."""
    assert [moment.name for moment in played.moments][-1] == "after"
    assert len(played.disk.effects) > 100


def test_a_kill_anywhere_loses_nothing(played: Played, root: Path) -> None:
    """One copy opens, and has every record that an append had returned for."""
    for position, machine in stops(played, share=0.5):
        if played.disk.effects[position - 1].kind != "sync":
            check_stop(played, position, machine, root, loss=Loss.KILL, names=None)


@pytest.mark.parametrize("loss", POWER, ids=lambda loss: loss.name)
def test_a_power_cut_loses_nothing_that_counted(played: Played, root: Path, loss: Loss) -> None:
    """Where records count once they are on disk, they are in the copy that opens."""
    picks = random.Random(2)
    for position, machine in stops(played, share=0.08, seed=POWER.index(loss)):
        pending = machine.pending_names
        names = picks.choice([None, 0, pending, picks.randint(0, pending)])
        check_stop(played, position, machine, root, loss=loss, names=names)


@pytest.mark.soak
def test_a_power_cut_anywhere(played: Played, root: Path) -> None:
    """Every point, every loss, and every prefix of the changes of names."""
    for position, machine in stops(played):
        for loss in POWER:
            for names in (None, *range(machine.pending_names + 1)):
                check_stop(played, position, machine, root, loss=loss, names=names)


def test_a_truncated_log_is_copied_again(tmp_path: Path) -> None:
    """What a follower truncates must not survive in the copy, even if the log grows again."""
    logs = open_directories(tmp_path / "one", tmp_path / "two", config=SMALL)
    log = logs.create(A, SMALL, TOPIC_A, NOW)
    append(log, 10)
    move = begin(logs, tmp_path)
    copy_all(move)
    log.truncate_to(4, now_ms=NOW)
    append(log, 9, producer=5)
    copy_all(move)
    assert contents_of(move.opened()) == contents_of(log)
    assert move.offset_lag == 0
    logs.close(clean=False)


def test_a_copy_that_retention_overtakes_begins_again(tmp_path: Path) -> None:
    """Where the source has lost what comes next, the copy starts at its new start."""
    logs = open_directories(tmp_path / "one", tmp_path / "two", config=SMALL)
    log = logs.create(A, SMALL, TOPIC_A, NOW)
    append(log, 20)
    move = begin(logs, tmp_path)
    move.take(move.next_part(200), now_ms=NOW)  # type: ignore[arg-type]
    assert move.opened().log_end_offset > 0
    log.delete_records_before(15)
    housekeep(logs, NOW)
    copy_all(move)
    assert move.try_switch(NOW)
    assert move.stage is Stage.SWITCHED
    copy = move.opened()
    assert (copy.log_start_offset, copy.log_end_offset, copy.high_watermark) == (15, 20, 20)
    logs.close(clean=False)


def test_an_empty_log_that_does_not_begin_at_0_keeps_its_offsets(tmp_path: Path) -> None:
    """The next record gets the offset it would have got."""
    logs = open_directories(tmp_path / "one", tmp_path / "two", config=SMALL)
    log = logs.create(A, SMALL, TOPIC_A, NOW)
    log.truncate_fully_at(40, now_ms=NOW)
    move = begin(logs, tmp_path)
    copy_all(move)
    assert move.try_switch(NOW)
    copy = move.opened()
    assert (copy.log_start_offset, copy.log_end_offset) == (40, 40)
    append(copy, 1)
    assert list(contents_of(copy)) == [40]
    logs.close(clean=False)


def test_a_batch_larger_than_a_segment_may_be_now_moves(tmp_path: Path) -> None:
    """`segment.bytes` was lowered after the batch was written."""
    logs = open_directories(tmp_path / "one", tmp_path / "two", config=SMALL)
    log = logs.create(A, SMALL, TOPIC_A, NOW)
    append(log, 3)
    log.config = type(SMALL)(segment_bytes=50, index_interval_bytes=10)
    move = begin(logs, tmp_path)
    copy_all(move)
    assert contents_of(move.opened()) == contents_of(log)
    logs.close(clean=False)


def begin(logs: LogDirectories, root: Path) -> ReplicaMove:
    """A move to the directory that has nothing."""
    target = next(
        path for path in (root / "one", root / "two") if path != logs.logs[A].directory.parent
    )
    found = logs.find(str(target))
    assert found is not None
    move = logs.begin_move(A, found)
    move.open_copy(NOW)
    return move
