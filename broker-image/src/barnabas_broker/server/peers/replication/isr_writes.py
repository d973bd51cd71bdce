"""Changing in-sync replicas by writing the coordination data, without asking the controller.

What brokers do while `inter.broker.protocol.version` is before 2.7-IV2 (Kafka's
`ZkAlterPartitionManager`). The store lives in the controller's thread; a leader that waits for an
ensemble that is away waits there, and its partitions' high watermarks with it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from uuid import UUID

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.replica.isr_notices import CHECK_MS, IsrNotices
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.peers.replication.isr_changes import NO_BROKER_EPOCHS, BrokerEpochs
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.ids import TopicPartition


class IsrWrites:
    """`alter` is an `isr_changes.AlterPartition`. `start` once, then `stop` once."""

    def __init__(
        self,
        controller: ControllerThread,
        *,
        monotonic_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._monotonic_ms = monotonic_ms
        self._clock_ms = clock_ms
        self._notices = IsrNotices(monotonic_ms())
        self._notifying: asyncio.Task[None] | None = None

    async def alter(
        self,
        tp: TopicPartition,
        _topic_id: UUID,
        wanted: PartitionState,
        _broker_epochs: BrokerEpochs = NO_BROKER_EPOCHS,
    ) -> PartitionState:
        """The state as it is once it is written. Raises KafkaError and CoordinationError."""
        now_ms = self._clock_ms()
        state = await self._controller.run(
            lambda controller: controller.write_in_sync(tp, wanted, now_ms=now_ms)
        )
        self._notices.written(tp, now_ms=self._monotonic_ms())
        return state

    def start(self) -> None:
        """Begin notifying the controller of written changes."""
        self._notifying = background().every(
            "notifying of ISR changes", lambda: CHECK_MS / 1000, self._notify_due
        )

    async def stop(self) -> None:
        """Notify no more: the next leaders and the next controller read the znodes."""
        if self._notifying is not None:
            self._notifying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._notifying

    async def _notify_due(self) -> None:
        await self._notify(self._notices.take(self._monotonic_ms()))

    async def _notify(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        now_ms = self._clock_ms()
        try:
            await self._controller.run(
                lambda controller: controller.notify_controller(partitions, now_ms=now_ms)
            )
        except BaseException:
            self._notices.put_back(partitions)
            raise
