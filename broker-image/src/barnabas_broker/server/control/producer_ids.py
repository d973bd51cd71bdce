"""Producer ids, handed out from blocks that this broker claims for itself.

Ids left over at a restart are lost, which costs nothing: there are 2^63.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas_broker.controller.transitions.producer_ids import BLOCK_SIZE
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import NO_PRODUCER_ID

if TYPE_CHECKING:  # The thread knows the whole controller; here only its type is named.
    from barnabas_broker.server.control.controller_thread import ControllerThread

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
        self, broker_id: int, *, controller: "ControllerThread", above: int = NO_PRODUCER_ID
    ) -> None:
        """`above` is the largest id found in this broker's logs: none up to it is given out.

        The store alone does not know of producers that wrote to a directory before it was adopted.
        """
        self.above = above
        self._broker_id = broker_id
        self._controller = controller
        self._claiming = asyncio.Lock()
        self._next = 0
        self._end = 0  # First id after the block.

    async def next(self, now_ms: int) -> int:
        """The next unused id; raises CoordinationError when no block can be claimed."""
        async with self._claiming:
            if self._next == self._end:
                self._next = await self._claimed(now_ms)
                self._end = self._next + BLOCK_SIZE
            producer_id = self._next
            self._next += 1
            return producer_id

    async def _claimed(self, now_ms: int) -> int:
        try:
            return await self._controller.run(
                lambda it: it.allocate_producer_ids(
                    self._broker_id, None, above=self.above, now_ms=now_ms
                )
            )
        except KafkaError as error:
            raise CoordinationError(error.message) from error
