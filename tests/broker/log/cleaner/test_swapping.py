"""A stop at every single step of a cleaning, by a kill and by a power cut."""

from __future__ import annotations

import contextlib
import errno
import logging
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from barnabas_broker.log import files
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import KafkaError
from tests.broker.log.cleaner.histories import (
    COMPACT,
    Survivor,
    clean,
    headers_of,
    last_values,
    open_compacted,
    read_through,
    survivors,
    write,
)
from tests.broker.log.disk import Disk, Hasty, using
from tests.broker.log.images import Loss, Machine, Tree, write_tree
from tests.broker.log.samples import NOW

CONFIG = replace(COMPACT, segment_bytes=500, segment_index_bytes=1200)
LATER = NOW + CONFIG.delete_retention_ms


@dataclass
class Life:
    """A log that was written, cleaned, and cleaned again when its tombstones were due."""

    disk: Disk
    #: effects before which nothing is stopped: the log is being written
    begins: int
    history: list[Survivor]
    #: what is left at the very end
    left: list[Survivor]
    end: int


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch, life: Life) -> None:
    monkeypatch.setattr(files, "system", Hasty())


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("barnabas_broker.log")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Three keys, one of them deleted; two cleanings of several groups each."""
    root = tmp_path_factory.mktemp("life")
    with using(Disk(root)) as disk:
        logs, log = open_compacted(root / "data", CONFIG)
        for number in range(30):
            value = None if number % 3 == 2 and number > 20 else b"v%d" % number
            write(log, (b"k%d" % (number % 3), value), producer=(7, 0, number))
        log.flush(now_ms=NOW)
        logs.checkpoint()
        history = survivors(log)
        begins = len(disk.effects)
        clean(logs)
        log.cleaned_to = 0
        clean(logs, now_ms=LATER)
        left = survivors(log)
        end = log.log_end_offset
        logs.close(clean=False)
    assert len(left) < len(history) / 2
    return Life(disk, begins, history, left, end)


def check(life: Life, tree: Tree, directory: Path, label: str) -> None:
    """Start on an image: nothing is lost, moved or doubled, and a cleaning ends the same."""
    data = tree["data"]
    assert isinstance(data, dict)
    write_tree(data, directory)
    try:
        logs, log = open_compacted(directory, CONFIG)
        _check_log(life, log)
        clean(logs)
        log.cleaned_to = 0
        clean(logs, now_ms=LATER)
        _check_log(life, log)
        assert [one for one in survivors(log) if one.offset < log.active.base_offset] == [
            one for one in life.left if one.offset < log.active.base_offset
        ]
        logs.close(clean=False)
    except BaseException as error:
        error.add_note(label)
        raise
    shutil.rmtree(directory)


def _check_log(life: Life, log: PartitionLog) -> None:
    found = survivors(log)
    assert set(found) <= set(life.history), "no record changes or moves"
    assert [one.offset for one in found] == sorted({one.offset for one in found})
    assert set(life.left) <= set(found), "what is newest stays"
    values = {key: value for key, value in last_values(log).items() if value is not None}
    assert values == {b"k0": b"v27", b"k1": b"v28"}, "deleted keys stay deleted"
    assert log.log_end_offset == life.end
    assert log.producers.producers[7].last_sequence == life.end - 1
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases))
    ends = [header.base_offset for header in headers_of(log)]
    assert ends == sorted(set(ends))
    assert read_through(log) == [one.offset for one in found]
    names = {path.name for path in log.directory.iterdir()}
    assert not any(name.endswith((".cleaned", ".swap")) for name in names)


def stops(life: Life) -> Iterator[tuple[int, Machine]]:
    machine = Machine()
    for position, effect in enumerate(life.disk.effects, start=1):
        machine.apply(effect)
        if position >= life.begins:
            yield position, machine


def test_a_kill_anywhere(life: Life, tmp_path: Path) -> None:
    """After every write, rename and removal."""
    changes = {"write", "truncate", "rename", "unlink", "link"}
    for position, machine in stops(life):
        effect = life.disk.effects[position - 1]
        if effect.kind in changes:
            check(life, machine.image(Loss.KILL), tmp_path / "data", f"KILL after {effect}")


def cuts(life: Life, share: float, seed: int) -> Iterator[tuple[Tree, str]]:
    picks = random.Random(seed)
    for position, machine in stops(life):
        for loss in Loss:
            for names in (None, *range(machine.pending_names + 1)):
                if loss is not Loss.KILL and picks.random() < share:
                    effect = life.disk.effects[position - 1]
                    label = f"{loss.name} with names {names} after {effect}"
                    yield machine.image(loss, names), label


def test_a_power_cut(life: Life, tmp_path: Path) -> None:
    """With what was not synced lost, zeroed or half there, and names as strict as POSIX allows."""
    for tree, label in cuts(life, 0.01, seed=1):
        check(life, tree, tmp_path / "data", label)


@pytest.mark.soak
def test_a_power_cut_anywhere(life: Life, tmp_path: Path) -> None:
    """The same with every twentieth combination there is."""
    for tree, label in cuts(life, 0.05, seed=2):
        check(life, tree, tmp_path / "data", label)


class _Scarce(Disk):
    """A disk on which no log file can be opened once segments are being replaced."""

    def rename(self, source: Path, target: Path, /) -> None:
        super().rename(source, target)
        if target.name.endswith(".log.swap"):
            self.fail("open", errno.EMFILE, path=".log", times=1)


def test_segments_are_replaced_without_another_descriptor(tmp_path: Path) -> None:
    """The log would go on with segments whose names are gone, until one of them is read."""
    (tmp_path / "root").mkdir()
    with using(_Scarce(tmp_path / "root")):
        logs, log = open_compacted(tmp_path / "root" / "data", CONFIG)
        for number in range(30):
            write(log, (b"k%d" % (number % 3), b"v%d" % number), producer=(7, 0, number))
        logs.close(now_ms=NOW)
        merging = replace(CONFIG, segment_bytes=100_000)
        logs, log = open_compacted(tmp_path / "root" / "data", merging)
        with contextlib.suppress(KafkaError):
            clean(logs)
        for offset in range(log.log_end_offset):
            log.read(offset, 100, upper_bound=log.log_end_offset)
        assert log.health.readable
        assert len(log.segments) == 2
        logs.close(now_ms=NOW)
