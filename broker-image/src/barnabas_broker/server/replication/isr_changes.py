"""Carrying out what leaders want changed in their in-sync replicas.

The change goes to whoever may write the partition's state (`AlterPartition`: the controller, or
ZooKeeper itself). Until it is known what became of it, the high watermark waits for both outcomes.
Where that cannot be known, the controller's next word about the partition tells (Kafka's
`Partition.handleAlterPartitionError`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final
from uuid import UUID

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.replica.in_sync import IsrChange
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.peers import PeerError
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

log = logging.getLogger(__name__)

RETRY_S: Final = 0.05
RETRY_MAX_S: Final = 1.0

AlterPartition = Callable[[TopicPartition, UUID, PartitionState], Awaitable[PartitionState]]
"""Has a partition's state written: its ISR is to be the one of the state given, provided that
leader epoch and partition epoch are still those given. Returns the state as it is now.

Raises KafkaError: OPERATION_NOT_ATTEMPTED or INELIGIBLE_REPLICA where the change was not made and
will not be; INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION,
UNKNOWN_TOPIC_ID, INVALID_REQUEST or NEW_LEADER_ELECTED where the controller's next word decides;
any other, PeerError and CoordinationError are tried again. It may be called again for a change
that was made already, and answers with the state that is there then.
"""

_REFUSED: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
_UNDECIDED: Final = (
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)


class IsrChanges:
    """The changes under way, one for each partition at most. Lives on the event loop."""

    def __init__(self, alter: AlterPartition, *, clock_ms: Callable[[], int]) -> None:
        self._alter = alter
        self._clock_ms = clock_ms
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, partition: Partition, change: IsrChange) -> None:
        """Have a change made; the partition is told what became of it."""
        task = asyncio.get_running_loop().create_task(self._make(partition, change))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Give up what is under way; whoever leads next finds out."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _make(self, partition: Partition, change: IsrChange) -> None:
        log.info(
            "%s: asking for the in-sync replicas %s instead of %s (high watermark %d of %d)",
            partition.tp, change.isr, partition.in_sync.isr,
            partition.log.high_watermark, partition.log.log_end_offset,
        )  # fmt: skip
        pause_s = RETRY_S
        while partition.in_sync.pending is change:
            try:
                if await self._attempt(partition, change):
                    return
            except (KafkaError, PeerError, CoordinationError) as error:
                log.warning("%s: the in-sync replicas are not changed yet: %s", partition.tp, error)
            except Exception:  # A change that is not tried again would stay under way for good.
                log.exception("%s: changing the in-sync replicas failed", partition.tp)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_MAX_S)

    async def _attempt(self, partition: Partition, change: IsrChange) -> bool:
        """Whether it is settled what becomes of the change, as far as can be known here."""
        if change.flush_first:
            await self._flush(partition.log)
        wanted = replace(
            partition.state,
            isr=change.isr,
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
        )
        topic_id = partition.log.topic_id or UUID(int=0)
        try:
            state = await self._alter(partition.tp, topic_id, wanted)
        except KafkaError as error:
            if error.code in _REFUSED:
                log.info("%s: the in-sync replicas stay: %s", partition.tp, error.code.name)
                partition.isr_change_refused(change)
                return True
            if error.code in _UNDECIDED:
                log.info("%s: the in-sync replicas may have been changed by others: %s",
                         partition.tp, error.code.name)  # fmt: skip
                return True
            raise
        if partition.in_sync.pending is change:
            partition.isr_changed(state)
            log.info("%s: the in-sync replicas are %s", partition.tp, partition.state.isr)
        return True

    async def _flush(self, partition_log: PartitionLog) -> None:
        """Force all that the log holds now to disk; raises KafkaError KAFKA_STORAGE_ERROR.

        What comes while that lasts is not in it: records that the high watermark passes without
        those who leave can only come once the change is made.
        """
        if partition_log.failure is not None:  # A sync that failed is never tried again.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, partition_log.failure)
        plan = partition_log.flush_plan()
        await asyncio.to_thread(plan.run)
        partition_log.flushed(plan, now_ms=self._clock_ms())
