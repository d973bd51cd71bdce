"""Which batches of transactions a cleaning may drop, decided in the order of the log.

Records of an aborted transaction go at once. A marker goes when no record of its transaction is
left: it first gets a delete horizon, so that consumers inside the transaction still read it.
Source of the rules: Apache Kafka's CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from barnabas_broker.log.batches import StoredBatch
from barnabas_broker.log.transaction_index import AbortedTransaction
from barnabas_kafka.records.control import ControlType


class CleanedTransactions:
    """Open transactions while a log is walked from an offset on.

    ``kept`` collects the aborted transactions whose marker stays, for the new transaction index.
    """

    __slots__ = ("_aborted", "_committed", "_seen", "_waiting", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._waiting = deque(sorted(aborted, key=lambda entry: entry.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        #: producers in an aborted transaction that has records left
        self._seen: set[int] = set()
        #: producers in a transaction that is not known to be aborted and has records left
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []

    def batch_read(self, batch: StoredBatch) -> bool:
        """Take note of a data batch; True when its transaction was aborted."""
        self._advance(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._seen.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def marker_read(self, batch: StoredBatch, kind: ControlType | None, *, empty: bool) -> bool:
        """Take note of a control batch; True when nothing in the log needs it any more.

        ``kind`` is None for control records of other kinds, which stay; ``empty`` says that an
        earlier cleaning has taken the marker out of the batch.
        """
        self._advance(batch.last_offset)
        producer = batch.producer_id
        if empty:
            return True
        if kind is ControlType.ABORT:
            entry = self._aborted.pop(producer, None)
            if entry is None or producer not in self._seen:
                return True
            self._seen.discard(producer)
            self.kept.append(entry)
            return False
        if kind is ControlType.COMMIT:
            open_before = producer in self._committed
            self._committed.discard(producer)
            return not open_before
        return False

    def _advance(self, offset: int) -> None:
        while self._waiting and self._waiting[0].first_offset <= offset:
            entry = self._waiting.popleft()
            self._aborted.setdefault(entry.producer_id, entry)
