"""Carrying out one decided transaction: its markers, and then its completion."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.coordinator.transaction.markers import Elsewhere, Marker, MarkerWriter
from barnabas_broker.coordinator.transaction.shard import WriteMarkers
from barnabas_broker.invariants import violated
from barnabas_broker.replica.delayed_produce import ALL_IN_SYNC, DelayedProduce, Uncounted
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Markers that are written before the event loop goes on: a few milliseconds."""

TIMEOUT_MS = 30_000
"""How long markers may take to count before it is logged and they are written again."""

PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 2.0

_WRITTEN = (
    ErrorCode.NONE,
    # It is in the log of every replica that is left.
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


class Ending:
    """Goes on until every partition has its marker, or the coordinator is elsewhere.

    `exists` says whether there is (still) such a partition; `complete` writes the completion and
    returns false where it could not; `goes_on` says whether this broker still coordinates.
    """

    def __init__(
        self,
        order: WriteMarkers,
        coordinator_epoch: int,
        writer: MarkerWriter,
        *,
        elsewhere: Elsewhere | None = None,
        exists: Callable[[TopicPartition], bool],
        complete: Callable[[], bool],
        goes_on: Callable[[], bool],
    ) -> None:
        self._id = order.transactional_id
        self._marker = Marker(order.producer, order.commit, coordinator_epoch, order.protocol)
        self._missing = sorted(order.partitions)
        self._again: list[TopicPartition] = []
        # Those of this iteration without a response: they count as not written.
        self._unacknowledged: set[TopicPartition] = set()
        self._writer = writer
        self._elsewhere = elsewhere
        self._waiting = 0
        self._exists = exists
        self._complete = complete
        self._goes_on = goes_on
        self._pause_s = PAUSE_FIRST_S
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Start with the next iteration of the event loop."""
        self._loop.call_soon(self._go)

    def _go(self) -> None:
        if not self._goes_on():
            return
        some, self._missing = self._missing[:AT_ONCE], self._missing[AT_ONCE:]
        self._unacknowledged.update(some)
        uncounted: list[Uncounted] = []
        others: dict[int, list[TopicPartition]] = {}
        parts: list[asyncio.Future[Any]] = []

        def write(tp: TopicPartition) -> None:
            leader = None if self._elsewhere is None else self._elsewhere.leader(tp)
            if leader is not None:
                others.setdefault(leader, []).append(tp)
            elif (waiting := self._writer.write(tp, self._marker, self._on_response)) is not None:
                uncounted.append(waiting)

        def ask(leader: int) -> None:
            assert self._elsewhere is not None, violated("it has named the leader")
            theirs = others[leader]
            parts.append(self._elsewhere.write(leader, self._marker, theirs, self._on_response))

        # What fails stays among those without a response, which are written again.
        each_isolated(some, write, "Transaction marker", name=lambda tp: f"{self._id!a} in {tp}")
        each_isolated(others, ask, "Transaction markers", name=lambda _: f"{self._id!a}")
        if uncounted:
            counting = DelayedProduce(
                self._loop, uncounted, acks=ALL_IN_SYNC, timeout_ms=TIMEOUT_MS, response=None
            )
            parts.append(counting.future)
        self._waiting = len(parts)
        for part in parts:
            part.add_done_callback(self._part_ended)
        if not parts:
            self._next()

    def _part_ended(self, part: "asyncio.Future[Any]") -> None:
        self._waiting -= 1
        if part.cancelled():
            if not isinstance(part, asyncio.Task) or part.cancelling():  # The broker stops.
                return
            # Another caller cancelled the shared Future: markers are missing.
            log.error("Failed to write transaction markers: transactional.id=%a", self._id)
        elif (error := part.exception()) is not None:
            log.error(
                "Failed to write transaction markers: transactional.id=%a", self._id, exc_info=error
            )
        if not self._waiting:
            self._next()

    def _on_response(self, tp: TopicPartition, code: ErrorCode) -> None:
        """A marker is written, or why it is not."""
        self._unacknowledged.discard(tp)
        if code in _WRITTEN:
            return
        if code is ErrorCode.INVALID_PRODUCER_EPOCH:
            # The partition has seen a newer epoch of this producer, and nothing older opens it.
            log.error(
                "Transaction marker fenced: partition=%s transactional.id=%a, the producer "
                "epoch there is newer",
                tp,
                self._id,
            )
        elif code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._exists(tp):
            log.info(
                "Transaction marker skipped, the partition is deleted: partition=%s "
                "transactional.id=%a",
                tp,
                self._id,
            )
        else:
            log.warning(
                "Retrying a transaction marker: transactional.id=%a partition=%s %s",
                self._id,
                tp,
                code.name,
            )
            self._again.append(tp)

    def _next(self) -> None:
        self._again += sorted(self._unacknowledged)
        self._unacknowledged.clear()
        if self._missing:
            self._loop.call_soon(self._go)
        elif self._again:
            self._missing, self._again = self._again, []
            self._later()
        elif self._goes_on() and not self._completed():
            self._later()

    def _completed(self) -> bool:
        try:
            return self._complete()
        except Exception:  # The transaction would stay open in its log, and its producer wait.
            log.exception("Failed to complete a transaction: transactional.id=%a", self._id)
            return False

    def _later(self) -> None:
        self._loop.call_later(self._pause_s, self._go)
        self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)
