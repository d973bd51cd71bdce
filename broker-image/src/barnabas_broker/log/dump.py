"""Reading the files of a data directory for people: what ``barnabas dump-log`` shows.

Each function reads one kind of file and yields typed rows; what is wrong with a file is a row too
(or a field of one), never an exception, unless the file cannot be read at all. The checks are
those of Apache Kafka's DumpLogSegments: record offsets that follow each other, index entries that
point at the batch they name, time index entries that carry the greatest timestamp of their batch,
and bytes behind the last whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barnabas_broker.log import batches, checkpoints, producer_snapshot, transaction_index
from barnabas_broker.log.batches import CorruptSegmentError, StoredBatch
from barnabas_broker.log.contents import records_of
from barnabas_broker.log.epochs import EpochEntry
from barnabas_broker.log.files import DataFile
from barnabas_broker.log.indexes import CorruptIndexError, OffsetIndex, TimeIndex
from barnabas_broker.log.markers import end_marker
from barnabas_broker.log.names import LOG, OFFSET_INDEX, TIME_INDEX, offset_of
from barnabas_broker.log.producer_state import EndMarker, ProducerEntry
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.records.batch import CorruptBatch, Record
from barnabas_kafka.records.compression import Codec


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch of a ``.log`` file; ``valid`` says whether its CRC matches."""

    batch: StoredBatch
    valid: bool

    @property
    def codec(self) -> str:
        """The codec's name in lower case, or its number where it is undefined."""
        number = self.batch.attributes & 0x07
        return Codec(number).name.lower() if number <= Codec.ZSTD else str(number)

    @property
    def timestamp_type(self) -> str:
        if self.batch.magic == 0:
            return "NoTimestampType"
        return "LogAppendTime" if self.batch.attributes & 0x08 else "CreateTime"

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 without sequences."""
        first = self.batch.base_sequence
        if first < 0:
            return -1
        return (first + self.batch.last_offset - self.batch.base_offset) & 0x7FFFFFFF

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones (KIP-534), if it is set."""
        horizon = self.batch.magic == 2 and self.batch.attributes & 0x40
        return self.batch.base_timestamp if horizon else None


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record; ``sequence`` is -1 without a producer, ``marker`` only in control batches."""

    batch: StoredBatch
    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    marker: EndMarker | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the file, in words; ``position`` in bytes where it is known."""

    message: str
    position: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """An entry of an offset index; ``found`` is the last offset of the batch it points at."""

    offset: int
    position: int
    found: int | None

    @property
    def problem(self) -> str | None:
        if self.found == self.offset:
            return None
        if self.found is None:
            return f"offset {self.offset}: no batch at position {self.position}"
        return f"index offset {self.offset}, log offset {self.found}"


@dataclass(frozen=True, slots=True)
class TimeRow:
    """An entry of a time index; ``problem`` says how it contradicts the log."""

    timestamp: int
    offset: int
    problem: str | None


def dump_log(
    path: Path, *, deep: bool = False, max_bytes: int | None = None
) -> Iterator[BatchRow | RecordRow | Problem]:
    """The batches of a ``.log`` file in order; ``deep``: each followed by its records.

    ``max_bytes`` limits how much of the file is read. Raises OSError.
    """
    file = DataFile.open(path, writable=False)
    position, previous = 0, None
    try:
        for batch in batches.walk(file, 0, max_bytes):
            data = file.read(batch.position, batch.size)
            yield BatchRow(batch, _is_valid(batch, data))
            for row in _records(batch, data) if deep else ():
                if isinstance(row, RecordRow):
                    if previous not in (None, row.offset - 1):
                        yield Problem(f"offset {previous} is followed by {row.offset}")
                    previous = row.offset
                yield row
            position = batch.next_position
    except CorruptSegmentError as error:
        yield Problem(error.reason, error.position)
    rest = file.size - position
    if rest and max_bytes is None:
        yield Problem(f"{rest} bytes at the end of {path.name} are not a whole batch", position)


def _is_valid(batch: StoredBatch, data: bytes) -> bool:
    try:
        batches.ensure_valid(batch, data)
    except CorruptSegmentError:
        return False
    return True


def _records(batch: StoredBatch, data: bytes) -> Iterator[RecordRow | Problem]:
    try:
        records = records_of(batch, data)
        marker = end_marker(data) if batch.is_control else None
    except CorruptBatch as error:
        yield Problem(f"the records cannot be read: {error}", batch.position)
        return
    for record in records:
        sequence = -1
        if batch.base_sequence >= 0:
            sequence = (batch.base_sequence + record.offset - batch.base_offset) & 0x7FFFFFFF
        headers = record.headers if isinstance(record, Record) else ()
        yield RecordRow(batch, record.offset, record.timestamp, sequence, record.key, record.value,
                    headers, marker)  # fmt: skip


def dump_offset_index(path: Path) -> Iterator[OffsetRow | Problem]:
    """The entries of an ``.index`` file, each held against the ``.log`` beside it.

    Stops at the zeros of a preallocated rest. Raises OSError.
    """
    base, log = _segment_beside(path)
    index = OffsetIndex(path, base, max_bytes=0)
    try:
        for number in range(len(index)):
            offset, position = index.entry(number)
            if offset == base and number:
                return
            yield OffsetRow(offset, position, _last_offset_at(log, position))
    except CorruptIndexError as error:
        yield Problem(str(error))


def _last_offset_at(log: DataFile, position: int) -> int | None:
    try:
        batch = next(batches.walk(log, position), None)
    except CorruptSegmentError:
        return None
    return batch.last_offset if batch is not None else None


def dump_time_index(path: Path) -> Iterator[TimeRow | Problem]:
    """The entries of a ``.timeindex`` file, each held against the log and the offset index.

    Stops at the zeros of a preallocated rest. Raises OSError.
    """
    base, log = _segment_beside(path)
    offsets = OffsetIndex(path.with_suffix(OFFSET_INDEX), base, max_bytes=0)
    times = TimeIndex(path, base, max_bytes=0)
    previous = -1
    try:
        for number in range(len(times)):
            timestamp, offset = times.entry(number)
            if offset == base and number:
                return
            problem = _time_problem(log, offsets.lookup(offset)[1], timestamp, offset)
            if problem is None and timestamp <= previous:
                problem = f"timestamp {timestamp} is not above {previous} before it"
            yield TimeRow(timestamp, offset, problem)
            previous = timestamp
    except CorruptIndexError as error:
        yield Problem(str(error))


def _time_problem(log: DataFile, position: int, timestamp: int, offset: int) -> str | None:
    try:
        batch = batches.find(log, position, offset)
        if batch is None or batch.last_offset != offset:
            found = "none" if batch is None else str(batch.last_offset)
            return f"offset {offset} ends no batch, the next one ends at {found}"
        records = records_of(batch, log.read(batch.position, batch.size))
    except (CorruptSegmentError, CorruptBatch) as error:
        return str(error)
    youngest = max((record.timestamp for record in records), default=-1)
    if youngest != timestamp:
        return f"index timestamp {timestamp}, log timestamp {youngest}"
    return None


def check_index(path: Path) -> str | None:
    """What start-up would say of an ``.index`` or ``.timeindex`` file: None, or why it is corrupt.

    Raises OSError, and ValueError for other files.
    """
    base = offset_of(path.name)
    index: OffsetIndex | TimeIndex
    if base is not None and path.suffix == OFFSET_INDEX:
        index = OffsetIndex(path, base, max_bytes=0)
    elif base is not None and path.suffix == TIME_INDEX:
        index = TimeIndex(path, base, max_bytes=0)
    else:
        raise ValueError(f"{path} is not an index")
    try:
        len(index)
    except CorruptIndexError as error:
        return str(error)
    return None


def dump_snapshot(path: Path) -> Iterator[ProducerEntry | Problem]:
    """The producers in a ``.snapshot`` file. Raises OSError."""
    try:
        yield from producer_snapshot.decode(path.read_bytes())
    except producer_snapshot.CorruptSnapshotError as error:
        yield Problem(str(error))


def dump_transaction_index(path: Path) -> Iterator[AbortedTransaction | Problem]:
    """The aborted transactions in a ``.txnindex`` file. Raises OSError."""
    try:
        yield from transaction_index.parse(path.read_bytes(), path)
    except CorruptIndexError as error:
        yield Problem(str(error))


def dump_epochs(path: Path) -> Iterator[EpochEntry | Problem]:
    """The entries of a leader-epoch-checkpoint. Raises OSError."""
    try:
        yield from checkpoints.parse_epochs(path.read_bytes())
    except checkpoints.MalformedCheckpointError as error:
        yield Problem(str(error))


def _segment_beside(path: Path) -> tuple[int, DataFile]:
    base = offset_of(path.name)
    if base is None:
        raise FileNotFoundError(f"{path} is not named after an offset")
    return base, DataFile.open(path.with_suffix(LOG), writable=False)
