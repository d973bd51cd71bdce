"""Reading what a coordinator keeps back from a partition's log.

Transactional records are replayed as such, and their end when the marker is reached (KIP-98):
the core decides what counts until then.

A record that cannot be decoded or replayed is logged with its partition and offset, and skipped:
the coordinator serves without it. What the process lacks (memory, file descriptors) and what the
disk answers is not the record's fault, and is raised.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.records.batch import BatchHeader, CorruptBatch, headers, records
from barnabas_kafka.records.batch import Record as LogRecord
from barnabas_kafka.records.control import ControlType, parse_end_transaction

log = logging.getLogger(__name__)

R = TypeVar("R")

NOT_THE_RECORDS = (OSError, MemoryError)
"""Errors that say nothing about the record that is being read."""

RECORDS_AT_ONCE = 500
"""How many records are replayed before the event loop goes on: a few milliseconds."""


class Kind(Protocol[R]):
    """How records look in a log.

    `in_transaction` is what a record means that a producer wrote in its transaction, None where
    there is no such thing; `ended` is what its end means.
    """

    def decode(self, key: bytes, value: bytes | None) -> R | None:
        """The record, None for a kind that is not known here; raises DecodeError."""
        ...

    def in_transaction(self, producer_id: int, record: R) -> R | None:
        """The record as it is until the transaction ends."""
        ...

    def ended(self, producer_id: int, *, committed: bool) -> R | None:
        """The end of a producer's transaction in this partition."""
        ...


def read_back(
    partition_log: PartitionLog,
    kind: Kind[R],
    replay: Callable[[R], None],
    *,
    buffer_bytes: int,
) -> Iterator[None]:
    """Replay the whole log, in steps of bounded work.

    What a former run appended counts for this one, also above the high watermark: it was never
    taken back. What is appended while this runs is replayed too; when the iterator is exhausted,
    everything has been. `buffer_bytes` are read at once. Raises KafkaError, OSError,
    MemoryError or CorruptBatch where the log cannot be read.
    """
    reader = _Reader(partition_log, kind, replay)
    offset = partition_log.log_start_offset
    done = 0
    while offset < partition_log.log_end_offset:
        end = partition_log.log_end_offset
        data = partition_log.read(offset, buffer_bytes, upper_bound=end).read()
        if not data:
            return
        for position, header in headers(data):
            reader.take(data, position, header)
            offset = header.next_offset
            done += header.record_count
            if done >= RECORDS_AT_ONCE:
                done = 0
                yield


class _Reader(Generic[R]):
    """Takes a log batch by batch."""

    def __init__(
        self, partition_log: PartitionLog, kind: Kind[R], replay: Callable[[R], None]
    ) -> None:
        self._log = partition_log
        self._kind = kind
        self._replay = replay

    def take(self, data: bytes, position: int, header: BatchHeader) -> None:
        try:
            contents = records(data, position)
        except Exception as error:
            if isinstance(error, NOT_THE_RECORDS):
                raise
            self._skip("the batch", header.base_offset, error, expected=CorruptBatch)
            return
        for each in contents:
            if each.offset >= self._log.log_start_offset:
                self._take_record(each, header)

    def _take_record(self, record: LogRecord, header: BatchHeader) -> None:
        try:
            decoded = self._decoded(record, header)
        except Exception as error:
            if isinstance(error, NOT_THE_RECORDS):
                raise
            self._skip("the record", record.offset, error, expected=(DecodeError, CorruptBatch))
            return
        if decoded is None:
            return
        try:
            self._replay(decoded)
        except Exception as error:
            if isinstance(error, NOT_THE_RECORDS):
                raise
            self._skip("the record", record.offset, error, expected=())

    def _decoded(self, record: LogRecord, header: BatchHeader) -> R | None:
        if header.is_control:
            marker = parse_end_transaction(record.key, record.value)
            if marker is None:
                return None
            committed = marker.control_type is ControlType.COMMIT
            return self._kind.ended(header.producer_id, committed=committed)
        decoded = self._kind.decode(record.key or b"", record.value)
        if decoded is None:
            log.warning("Unknown record type: partition=%s offset=%d", self._log.tp, record.offset)
        elif header.is_transactional:
            return self._kind.in_transaction(header.producer_id, decoded)
        return decoded

    def _skip(
        self,
        what: str,
        offset: int,
        error: Exception,
        *,
        expected: type[Exception] | tuple[type[Exception], ...],
    ) -> None:
        """Log what is left out; with a traceback unless the error says that the bytes are bad."""
        unexpected = not isinstance(error, expected)
        reason = f"{type(error).__name__}: {error}" if unexpected else str(error)
        log.error(
            "Skipped: partition=%s %s at offset %d: %s", self._log.tp, what, offset, reason,
            exc_info=error if unexpected else None,
        )  # fmt: skip
