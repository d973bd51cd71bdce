"""Reading what a coordinator keeps back from a partition's log.

What was written in a transaction is told as that, and its end when the marker is reached (KIP-98):
the core decides what counts until then.
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

RECORDS_AT_ONCE = 500
"""How many records are replayed before others get their turn: a few milliseconds."""


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
    everything has been. `buffer_bytes` are read at once. Raises KafkaError where the log cannot be
    read.
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
        except CorruptBatch as error:
            log.error("%s: a batch is skipped: %s", self._log.tp, error)
            return
        if header.is_control:
            self._end(contents, header.producer_id)
            return
        for each in contents:
            decoded = self._decoded(each)
            if decoded is not None and header.is_transactional:
                decoded = self._kind.in_transaction(header.producer_id, decoded)
            if decoded is not None:
                self._replay(decoded)

    def _end(self, markers: list[LogRecord], producer_id: int) -> None:
        for each in markers:
            marker = parse_end_transaction(each.key, each.value)
            if marker is None:
                continue
            committed = marker.control_type is ControlType.COMMIT
            ended = self._kind.ended(producer_id, committed=committed)
            if ended is not None:
                self._replay(ended)

    def _decoded(self, record: LogRecord) -> R | None:
        if record.offset < self._log.log_start_offset:
            return None
        where = f"{self._log.tp}: the record at {record.offset}"
        try:
            decoded = self._kind.decode(record.key or b"", record.value)
        except DecodeError as error:
            log.error("%s is skipped: %s", where, error)
            return None
        if decoded is None:
            log.warning("%s is of a kind unknown here", where)
        return decoded
