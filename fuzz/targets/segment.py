"""A partition directory in which anything may stand, as an unclean stop or a bad disk leaves it.

Input: flags, the size of each index file, then the log and the files beside it one after another.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from barnabas_broker.log import batches
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.loader import Checkpointed
from barnabas_broker.log.names import offset_of
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.validator import ProduceRules, validate_produce
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.batch import stamp
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from fuzz.batches import NOW_MS, random_batch
from fuzz.oracle import promise

_TP: Final = TopicPartition("t", 0)
_CONFIG: Final = LogConfig(segment_bytes=2000, index_interval_bytes=100, segment_index_bytes=240)
_BESIDE: Final = (".index", ".timeindex", ".txnindex", ".snapshot")
_NAME: Final = "0" * 20
_HEAD: Final = 1 + len(_BESIDE) + 1
_CLEAN, _SECOND = 1, 2


def check(data: bytes) -> None:
    """A log opens whatever is there, holds whole batches, takes another and opens the same."""
    if len(data) < _HEAD:
        return
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "t-0"
        directory.mkdir()
        clean = _fill(directory, data)
        log = _open(directory, clean=clean)
        if clean:
            # A clean stop is believed as far as it can be; only the next start looks at all of it.
            log.close(clean=False)
            log = _open(directory, clean=False)
        held = _held(log)
        end = log.log_end_offset
        accepted = validate_produce(
            build_batch([(NOW_MS, b"k", b"v", ())]), rules=ProduceRules(), now_ms=NOW_MS
        )
        took = log.append_as_leader(accepted, leader_epoch=1 << 30, now_ms=NOW_MS)
        promise(took.first_offset == end, "appended elsewhere", took, end)
        after = _held(log)
        log.close(clean=False)
        again = _open(directory, clean=False)
        promise(_held(again) == after, "another log when it is opened again")
        promise(held == after[: len(held)], "an append changes what was before it")
        again.close(clean=False)


def _fill(directory: Path, data: bytes) -> bool:
    flags = data[0]
    sizes = data[1:_HEAD]
    rest = data[_HEAD:]
    for suffix, size in zip(_BESIDE, sizes, strict=False):
        if size:
            (directory / (_NAME + suffix)).write_bytes(rest[:size])
            rest = rest[size:]
    if sizes[-1]:
        (directory / "leader-epoch-checkpoint").write_bytes(rest[: sizes[-1]])
        rest = rest[sizes[-1] :]
    (directory / (_NAME + ".log")).write_bytes(rest)
    if flags & _SECOND:
        (directory / f"{4:020}.log").write_bytes(rest[: len(rest) // 2])
    return bool(flags & _CLEAN)


def _open(directory: Path, *, clean: bool) -> PartitionLog:
    return PartitionLog.open(directory, _TP, _CONFIG, Checkpointed(clean=clean), now_ms=NOW_MS)


def _held(log: PartitionLog) -> list[tuple[int, int, bytes]]:
    """Every batch of the files; offsets grow, and all lie below the end."""
    found: list[tuple[int, int, bytes]] = []
    for path in sorted(log.directory.glob("*.log"), key=lambda path: offset_of(path.name) or 0):
        file = DataFile.open(path, writable=False)
        found.extend(
            (batch.base_offset, batch.last_offset + 1, bytes(content))
            for batch, content in batches.scan(file)
        )
    promise(all(end <= log.log_end_offset for _, end, _ in found), "beyond the end")
    promise(all(a[1] <= b[0] for a, b in itertools.pairwise(found)), "offsets fall")
    return found


def seeds() -> Iterator[bytes]:
    """Sound logs of every format, alone, cut short, and with files of their own beside them."""
    chance = random.Random(6)
    for magic in (0, 1, 2):
        content = bytearray()
        offset = 0
        for _ in range(3):
            batch = bytearray(random_batch(chance, magic, Codec.NONE))
            if magic == 2:
                stamp(batch, 0, base_offset=offset, leader_epoch=1)
                offset += int.from_bytes(batch[57:61], "big")
            content += batch
        yield bytes(_HEAD) + content
        yield bytes(_HEAD) + content[:-7]
        yield bytes((1, 8, 12, 0, 0, 0)) + bytes(20) + content
        yield bytes((2, 0, 0, 34, 0, 8)) + bytes(34) + b"0\n1\n1 0\n" + content
