"""Carrying out what leaders want changed in their in-sync replicas.

The change goes to the writer of the partition's state (`AlterPartition`: the controller, or
ZooKeeper itself). Until it is known what became of it, the high watermark waits for both outcomes.
So it is asked for again until it is settled: made, refused for good, or out of date because the
controller has named a newer state. Asking again is safe, for a change is only ever made on top of
the state that it was decided by. Kafka's `Partition.handleAlterPartitionError` does not ask again
where a newer state is to be expected; if that was lost, or there is none, it waits for good.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final
from uuid import UUID

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.replica.isr import IsrChange
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.process.directory_threads import DirectoryThreads
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

log = logging.getLogger(__name__)

RETRY_S: Final = 0.05
RETRY_MAX_S: Final = 1.0

THREADS: Final = 2
"""For each log directory, to sync logs before followers leave."""

BrokerEpochs = Mapping[int, int]
"""The followers' broker epochs as of their last fetch; without those that send none."""

NO_BROKER_EPOCHS: Final[BrokerEpochs] = MappingProxyType({})

AlterPartition = Callable[
    [TopicPartition, UUID, PartitionState, BrokerEpochs], Awaitable[PartitionState]
]
"""Has a partition's state written: its ISR is to be the one of the state given, provided that
leader epoch and partition epoch are still those given, and that the followers are still registered
in those epochs. Returns the state as it is now.

Raises KafkaError: OPERATION_NOT_ATTEMPTED or INELIGIBLE_REPLICA where the change was not made and
will not be. After any other, PeerError and CoordinationError it may have been made, now or later;
it is called again then, and answers for a change that was made already with the state that is
there.
"""

_REFUSED: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)


class IsrChanges:
    """The changes under way, one for each partition at most. Lives on the event loop."""

    def __init__(self, alter: AlterPartition, *, clock_ms: Callable[[], int]) -> None:
        self._alter = alter
        self._clock_ms = clock_ms
        self._threads = DirectoryThreads("isr-sync", THREADS)
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, partition: Partition, change: IsrChange) -> None:
        """Request a change; the partition gets the outcome."""
        # Retried after any error: a change without a pending request would never be made.
        task = background().keep("AlterPartition", partial(self._make, partition, change))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def retry_now(self) -> None:
        """The controller has changed: requests under way are sent again without waiting."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def stop(self) -> None:
        """Give up pending changes; the next leader reads what was written."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.to_thread(self._threads.close)

    async def _make(self, partition: Partition, change: IsrChange) -> None:
        log.info(
            "%s: Requesting ISR %s instead of %s (high watermark %d of %d)",
            partition.tp, change.isr, partition.in_sync.isr,
            partition.log.high_watermark, partition.log.log_end_offset,
        )  # fmt: skip
        pause_s, logged = RETRY_S, ""
        while _is_under_way(partition, change):
            why = await self._attempt(partition, change)
            if not _is_under_way(partition, change):
                break
            if why != logged:  # Asking may go on for long; the same once more says nothing new.
                log.warning("%s: ISR change pending: %s", partition.tp, why)
                logged = why
            try:
                async with asyncio.timeout(pause_s):
                    await self._news.wait()
                pause_s = RETRY_S
            except TimeoutError:
                pause_s = min(2 * pause_s, RETRY_MAX_S)

    async def _attempt(self, partition: Partition, change: IsrChange) -> str:
        """Ask once; why the change is still under way, if it is."""
        try:
            if change.flush_first:
                await self._flush(partition.log)
            wanted = replace(
                partition.state,
                isr=change.isr,
                leader_epoch=change.leader_epoch,
                partition_epoch=change.partition_epoch,
            )
            topic_id = partition.log.topic_id or UUID(int=0)
            state = await self._alter(partition.tp, topic_id, wanted, change.broker_epochs)
        except KafkaError as error:
            if error.code in _REFUSED:
                log.info("%s: ISR change rejected: %s", partition.tp, error.code.name)
                partition.isr_change_refused(change)
            return str(error)
        except (PeerError, CoordinationError) as error:
            return str(error)
        except Exception as error:  # Not asked for again, it would stay under way for good.
            log.exception("%s: ISR change failed", partition.tp)
            return repr(error)
        if partition.in_sync.pending is change:
            partition.isr_changed(state)
            log.info("%s: ISR updated to %s", partition.tp, partition.state.isr)
        return f"the answer names the leader epoch {state.leader_epoch}"

    async def _flush(self, partition_log: PartitionLog) -> None:
        """Force all that the log holds now to disk; raises KafkaError KAFKA_STORAGE_ERROR.

        Records appended meanwhile are not in it: the high watermark can only pass them without the
        replicas that leave once the change is made.
        """
        if partition_log.failure is not None:  # A sync that failed is never tried again.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, partition_log.failure)
        plan = partition_log.flush_plan()
        await asyncio.wrap_future(self._threads.submit(partition_log.directory.parent, plan.run))
        partition_log.flushed(plan, now_ms=self._clock_ms())


def _is_under_way(partition: Partition, change: IsrChange) -> bool:
    """Whether the change may still be applied, and this broker still leads the partition.

    A replica that is given up has no leadership of its own any more, and forgets no change.
    """
    return partition.is_leader and partition.in_sync.pending is change
