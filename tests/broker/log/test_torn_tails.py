"""Logs cut, holed and flipped at many places: what is recovered is the longest valid prefix."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.log import batches
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile
from tests.broker.log.history import check_appends, check_derived, contents_of
from tests.broker.log.samples import NOW, append, batch_of, marker_of, open_log

SMALL = LogConfig(segment_bytes=900, index_interval_bytes=150, segment_index_bytes=240)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Hundreds of recoveries have much to say."""
    logger = logging.getLogger("barnabas_broker.log")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A killed log of several segments with producers, an abort and two leader epochs."""
    log = open_log(tmp_path, SMALL)
    for number in range(12):
        append(log, batch_of(2, timestamp=NOW + number), epoch=number // 6)
        append(log, batch_of(producer=(7, 0, number), transactional=True), epoch=number // 6)
    append(log, marker_of(7, 0, commit=False), epoch=1)
    for number in range(3):
        append(log, batch_of(producer=(8, 0, number)), epoch=1)
    return tmp_path / "orders-3"


def boundaries(path: Path) -> list[int]:
    """Where each batch of a file ends, 0 first."""
    return [0, *(batch.next_position for batch in batches.walk(DataFile.open(path)))]


def recover(source: Path, damage: Path, data: bytes, scratch: Path) -> dict[int, bytes]:
    """Open a copy of ``source`` with ``data`` in the place of one file; what the log holds."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(source, scratch / "orders-3")
    (scratch / "orders-3" / damage.name).write_bytes(data)
    log = open_log(scratch, SMALL, clean=False)
    held = contents_of(log)
    check_derived(log)
    check_appends(log)
    return held


def prefix(source: Path, last: Path, end: int) -> dict[int, bytes]:
    """Batches of ``source`` up to position ``end`` of ``last``, and none of later files."""
    found = {}
    for path in sorted(source.glob("*.log")):
        if path.name > last.name:
            break
        for batch, data in batches.scan(DataFile.open(path)):
            if path.name == last.name and batch.next_position > end:
                break
            found[batch.base_offset] = bytes(data)
    return found


def test_cut_at_every_byte_of_the_last_batches(written: Path, tmp_path: Path) -> None:
    """The last three batches: those that are whole stay, the one that is torn goes."""
    last = max(written.glob("*.log"))
    data, ends = last.read_bytes(), boundaries(last)
    assert len(ends) > 3
    for size in range(ends[-4], ends[-1]):
        whole = max(end for end in ends if end <= size)
        held = recover(written, last, data[:size], tmp_path / "scratch")
        assert held == prefix(written, last, whole), f"cut at {size}"


def test_zero_holes(written: Path, tmp_path: Path) -> None:
    """Blocks the kernel had not written back read as zeros; the log ends before the first."""
    picks = random.Random(3)
    for _ in range(60):
        path = picks.choice(sorted(written.glob("*.log")))
        data, ends = path.read_bytes(), boundaries(path)
        begin = picks.randrange(len(data))
        end = min(begin + picks.randint(1, 200), len(data))
        holed = data[:begin] + bytes(end - begin) + data[end:]
        first = next((n for n in range(begin, end) if data[n] != holed[n]), None)
        if first is None or in_unchecked_bytes(first, ends):
            continue
        whole = max(boundary for boundary in ends if boundary <= first)
        held = recover(written, path, holed, tmp_path / "scratch")
        assert held == prefix(written, path, whole), f"{path.name}: zeros from {begin} to {end}"


def in_unchecked_bytes(position: int, ends: list[int]) -> bool:
    """Base offset and leader epoch are outside the checksum: the broker itself writes them."""
    inside = position - max(end for end in ends if end <= position)
    return inside < 8 or 12 <= inside < 16


def test_bit_flips(written: Path, tmp_path: Path) -> None:
    """A flipped bit at 200 seeded places is found by the checksum or the length."""
    picks = random.Random(11)
    for _ in range(200):
        path = picks.choice(sorted(written.glob("*.log")))
        data, ends = bytearray(path.read_bytes()), boundaries(path)
        position = picks.randrange(len(data))
        if in_unchecked_bytes(position, ends):
            continue
        data[position] ^= 1 << picks.randrange(8)
        whole = max(end for end in ends if end <= position)
        held = recover(written, path, bytes(data), tmp_path / "scratch")
        assert held == prefix(written, path, whole), f"{path.name}: a bit at {position}"
