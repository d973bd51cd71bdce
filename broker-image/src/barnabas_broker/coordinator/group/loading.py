"""Reading the groups of a partition back from its log.

Offsets that were committed in a transaction count when its commit marker is reached, and not at
all after an abort (KIP-98): a log may hold them that another broker wrote.
"""

import logging
from collections.abc import Callable, Iterator

from barnabas_broker.coordinator.group.records import Record, decode
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.records.batch import BatchHeader, CorruptBatch, headers, records
from barnabas_kafka.records.batch import Record as LogRecord
from barnabas_kafka.records.control import ControlType, parse_end_transaction

log = logging.getLogger(__name__)

RECORDS_AT_ONCE = 500
"""How many records are replayed before others get their turn: a few milliseconds."""


def read_back(
    partition_log: PartitionLog, replay: Callable[[Record], None], *, buffer_bytes: int
) -> Iterator[None]:
    """Replay everything below the high watermark, in steps of bounded work.

    `buffer_bytes` are read at once. Raises KafkaError where the log cannot be read.
    """
    reader = _Reader(partition_log, replay)
    offset = partition_log.log_start_offset
    done = 0
    while offset < partition_log.high_watermark:
        data = partition_log.read(
            offset, buffer_bytes, upper_bound=partition_log.high_watermark
        ).read()
        if not data:
            return
        for position, header in headers(data):
            reader.take(data, position, header)
            offset = header.next_offset
            done += header.record_count
            if done >= RECORDS_AT_ONCE:
                done = 0
                yield
        yield


class _Reader:
    """Takes a log batch by batch; remembers what undecided transactions hold."""

    def __init__(self, partition_log: PartitionLog, replay: Callable[[Record], None]) -> None:
        self._log = partition_log
        self._replay = replay
        self._undecided: dict[int, list[Record]] = {}

    def take(self, data: bytes, position: int, header: BatchHeader) -> None:
        try:
            contents = records(data, position)
        except CorruptBatch as error:
            log.error("%s: a batch of groups is skipped: %s", self._log.tp, error)
            return
        if header.is_control:
            self._end(contents, header.producer_id)
            return
        for each in contents:
            decoded = self._decoded(each)
            if decoded is None:
                continue
            if header.is_transactional:
                self._undecided.setdefault(header.producer_id, []).append(decoded)
            else:
                self._replay(decoded)

    def _end(self, markers: list[LogRecord], producer_id: int) -> None:
        """A transaction is over: what it holds counts now, or never."""
        for each in markers:
            marker = parse_end_transaction(each.key, each.value)
            if marker is None:
                continue
            ended = self._undecided.pop(producer_id, [])
            if marker.control_type is ControlType.COMMIT:
                for decoded in ended:
                    self._replay(decoded)

    def _decoded(self, record: LogRecord) -> Record | None:
        if record.offset < self._log.log_start_offset:
            return None
        where = f"{self._log.tp}: the record at {record.offset}"
        try:
            decoded = decode(record.key or b"", record.value)
        except DecodeError as error:
            log.error("%s is skipped: %s", where, error)
            return None
        if decoded is None:
            log.warning("%s is of a kind unknown here", where)
        return decoded
