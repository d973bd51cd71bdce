"""Producer ids, handed out from blocks that this broker claims for itself.

Brokers share one znode, /latest_producer_id_block, and claim the next thousand ids by setting it
at the version they read (Kafka's ZkProducerIdManager). Ids left over at a restart are lost, which
costs nothing: there are 2^63.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.zk.store import CoordinationError, CoordinationStore, Create, SetData
from barnabas_broker.zk.znodes import ProducerIdBlock, ProducerIdBlockZnode
from barnabas_kafka.ids import NO_PRODUCER_ID
from barnabas_zookeeper.errors import BadVersionError, NodeExistsError, NoNodeError

if TYPE_CHECKING:  # The thread knows the whole controller; here only its type is named.
    from barnabas_broker.server.control.controller_thread import ControllerThread

BLOCK_SIZE = 1000
"""Ids in one block: one store write in a thousand new producers (Kafka's ProducerIdsBlock)."""

CLAIM_TRIES_MAX = 100
"""Every lost race means that another broker won one; a hundred in a row mean a broken store."""

BELIEVED_MAX = 2**62
"""Ids are given out from 0 upwards; one above this in a log was made up by a client."""


def largest_id(logs: Iterable[PartitionLog]) -> int:
    """The largest producer id that any of the logs remembers, NO_PRODUCER_ID for none."""
    return max(
        (
            producer_id
            for partition_log in logs
            for producer_id in partition_log.producers.producers
            if producer_id <= BELIEVED_MAX
        ),
        default=NO_PRODUCER_ID,
    )


class ProducerIds:
    """The producer ids of one broker, given out on the event loop."""

    def __init__(
        self,
        store: CoordinationStore,
        broker_id: int,
        *,
        controller: "ControllerThread",
        above: int = NO_PRODUCER_ID,
    ) -> None:
        """`above` is the largest id found in this broker's logs: none up to it is given out.

        The store alone does not know of producers that wrote to a directory before it was adopted.
        """
        self._store = store
        self._above = above
        self._broker_id = broker_id
        self._controller = controller
        self._claiming = asyncio.Lock()
        self._next = 0
        self._end = 0  # First id after the block.

    async def next(self, now_ms: int) -> int:
        """An id nobody has had; raises CoordinationError when no block can be claimed."""
        async with self._claiming:
            if self._next == self._end:
                self._next = await self._controller.run(lambda _: self.claim(now_ms))
                self._end = self._next + BLOCK_SIZE
            producer_id = self._next
            self._next += 1
            return producer_id

    def claim(self, now_ms: int, *, broker_id: int | None = None) -> int:
        """The first id of a new block; blocks, so it is called in the controller's thread.

        `broker_id` is the broker that it is for, if it is not this one.
        """
        owner = self._broker_id if broker_id is None else broker_id
        for _ in range(CLAIM_TRIES_MAX):
            unclaimed, version = self._latest()
            start = max(unclaimed, self._above + 1)
            block = ProducerIdBlock(owner, start, start + BLOCK_SIZE - 1)
            data = ProducerIdBlockZnode.encode(block)
            path = ProducerIdBlockZnode.PATH
            change = Create(path, data) if version is None else SetData(path, data, version)
            try:
                self._store.commit([change], now_ms=now_ms)
            except (BadVersionError, NodeExistsError):
                continue
            return start
        raise CoordinationError(f"lost {CLAIM_TRIES_MAX} races for a block of producer ids")

    def _latest(self) -> tuple[int, int | None]:
        """The first id nobody has claimed and the znode's version, None before the first claim."""
        try:
            data, stat = self._store.get(ProducerIdBlockZnode.PATH)
        except NoNodeError:
            return 0, None
        return ProducerIdBlockZnode.decode(data).last + 1, stat.version
