"""Segments of brokers of old whose offsets do not fit in 31 bits above their names."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from barnabas_broker.log import files, splitting
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.splitting import Piece
from barnabas_kafka.records.batch import Record, headers
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.legacy import build_message_set
from tests.broker.log.disk import Disk, Hasty, using
from tests.broker.log.images import Loss, Machine, write_tree
from tests.broker.log.samples import (
    NOW,
    append,
    bases,
    batch_of,
    open_log,
)

REACH = 2**31
CONFIG = LogConfig(compact=True, index_interval_bytes=100, segment_index_bytes=1200)

#: What one segment holds, and what the one behind it.
TOO_LONG = (0, 1, 5, REACH - 1, REACH, REACH + 7, 2 * REACH + 6, 3 * REACH, 3 * REACH + 1)
NEXT = (4 * REACH, 4 * REACH + 1)
OFFSETS = [*TOO_LONG, *NEXT]
BASES = [0, REACH, 2 * REACH + 6, 4 * REACH]


def written(directory: Path, *, first: bytes = b"") -> Path:
    """A partition as such a broker left it."""
    partition = directory / "orders-3"
    partition.mkdir(parents=True)
    data = first or b"".join(batch_of(offset=offset, leader_epoch=1) for offset in TOO_LONG)
    (partition / f"{0:020d}.log").write_bytes(data)
    rest = b"".join(batch_of(offset=offset, leader_epoch=1) for offset in NEXT)
    (partition / f"{NEXT[0]:020d}.log").write_bytes(rest)
    return directory


def offsets_in_files(log: PartitionLog) -> list[int]:
    return [
        header.base_offset
        for segment in log.segments
        for _, header in headers(segment.file.read(0, segment.size))
    ]


def found_by_reading(log: PartitionLog) -> list[int]:
    """What a reader finds that asks for each offset in turn."""
    return [
        next(headers(log.read(offset, 1, upper_bound=log.log_end_offset).read()))[1].base_offset
        for offset in OFFSETS
    ]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("indexes", ["none", "wrapped", "sparse"])
def test_it_is_split(tmp_path: Path, indexes: str, *, clean: bool) -> None:
    """Whatever its indexes say: each piece is named after its first batch and holds as much as
    fits, every record is found, and nothing is left to do for the next start.
    """
    written(tmp_path)
    for base in (0, NEXT[0]):
        for suffix in (".index", ".timeindex"):
            entries = b""
            if indexes == "wrapped" and suffix == ".index" and not base:
                entries = b"\x00\x00\x00\x05\x00\x00\x00\x5d\x80\x00\x00\x00\x00\x00\x01\x00"
            if indexes != "none":
                (tmp_path / "orders-3" / f"{base:020d}{suffix}").write_bytes(entries)
    log = open_log(tmp_path, CONFIG, clean=clean, recovery_point=5 * REACH)
    assert bases(log) == BASES
    assert offsets_in_files(log) == OFFSETS
    assert found_by_reading(log) == OFFSETS
    assert log.log_end_offset == NEXT[-1] + 1
    assert append(log, batch_of()) == NEXT[-1] + 1
    log.close()


def test_it_is_done_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next start finds segments like any other."""
    caplog.set_level("INFO")
    open_log(written(tmp_path), CONFIG, clean=False).close()
    assert caplog.text.count("row T5") == 1
    caplog.clear()
    log = open_log(tmp_path, CONFIG)
    assert (bases(log), offsets_in_files(log)) == (BASES, OFFSETS)
    assert "row" not in caplog.text
    log.close()


def test_entries_of_old_formats(tmp_path: Path) -> None:
    """A compressed one is named after its first message, which its header does not tell."""
    offsets = (0, 1, REACH + 3, REACH + 4, REACH + 9)
    messages = [Record(offset, NOW, b"k", b"v") for offset in offsets]
    data = build_message_set(messages[:2], magic=1)
    wrapped = build_message_set(messages[2:], magic=1, codec=Codec.GZIP)
    log = open_log(written(tmp_path, first=data + wrapped), CONFIG, clean=False)
    assert bases(log) == [0, REACH + 3, NEXT[0]]
    assert log.segments[1].file.read(0, 10_000) == wrapped
    log.close()


def test_an_end_that_is_no_batch_stays_with_the_last_piece(tmp_path: Path) -> None:
    """Recovery looks at it there, cuts it off and says so."""
    data = batch_of(offset=0) + batch_of(offset=REACH) + batch_of(offset=REACH + 1)[:-1]
    path = tmp_path / "0.log"
    path.write_bytes(data)
    size = len(batch_of())
    assert splitting.pieces(DataFile.open(path), 0) == [
        Piece(0, 0, size),
        Piece(REACH, size, len(data)),
    ]
    log = open_log(written(tmp_path, first=data), CONFIG, clean=False)
    assert (bases(log), offsets_in_files(log)) == ([0, REACH], [0, REACH])
    log.close()


def test_a_segment_that_fits_is_one_piece(tmp_path: Path) -> None:
    """Up to the last offset that does."""
    path = tmp_path / "7.log"
    path.write_bytes(batch_of(offset=7) + batch_of(2, offset=7 + REACH - 2))
    assert splitting.pieces(DataFile.open(path), 7) == [Piece(7, 0, path.stat().st_size)]


def test_in_the_last_segment_such_an_offset_is_damage(tmp_path: Path) -> None:
    """No checksum covers it and no segment follows that bounds it: there the log ends."""
    partition = tmp_path / "orders-3"
    partition.mkdir()
    data = b"".join(batch_of(offset=offset) for offset in (0, 1, REACH + 2))
    (partition / f"{0:020d}.log").write_bytes(data)
    log = open_log(tmp_path, CONFIG, clean=False)
    assert (bases(log), offsets_in_files(log), log.log_end_offset) == ([0], [0, 1], 2)
    log.close()


def test_a_stop_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill or a power cut after every effect, with any prefix of the changes of names: the next
    start has every record, once, in segments that fit.
    """
    root = tmp_path / "root"
    written(root / "data")
    with using(Disk(root)) as disk:
        begins = len(disk.effects)
        open_log(root / "data", CONFIG, clean=False, recovery_point=5 * REACH).close()
    monkeypatch.setattr(files, "system", Hasty())
    machine, image, seen = Machine(), tmp_path / "image", 0
    picks = random.Random(3)
    for number, effect in enumerate(disk.effects):
        machine.apply(effect)
        if number < begins:
            continue
        losses = [(Loss.KILL, None)] + [
            (loss, names)
            for loss in Loss
            for names in (None, *range(machine.pending_names + 1))
            if loss is not Loss.KILL and picks.random() < 0.1
        ]
        for loss, names in losses:
            seen += 1
            write_tree(machine.image(loss, names)["data"], image)  # type: ignore[arg-type]
            log = open_log(image, CONFIG, clean=False, recovery_point=5 * REACH)
            found = (bases(log), offsets_in_files(log), found_by_reading(log))
            log.close(clean=False)
            assert found == (BASES, OFFSETS, OFFSETS), f"{loss.name}, {names} after {effect}"
            left = {path.suffix for path in (image / "orders-3").iterdir()}
            assert not left & {".cleaned", ".swap"}
            shutil.rmtree(image)
    assert seen > 100
