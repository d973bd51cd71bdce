"""Blocks of producer ids, claimed for the broker that asks.

Kafka's `KafkaController.processAllocateProducerIds` and `ZkProducerIdManager`. Brokers share one
znode, /latest_producer_id_block, and the next thousand ids are claimed by setting it at the version
that was read. So a broker may claim for itself as well as have the controller do it.
"""

from typing import Final

from barnabas_broker.controller.commands import ReadProducerIdBlock, Transition, write_each
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.stored import StoredProducerIdBlock
from barnabas_broker.zk.operations import Create, SetData
from barnabas_broker.zk.znodes import ProducerIdBlock, ProducerIdBlockZnode
from barnabas_kafka.errors import ErrorCode, KafkaError

BLOCK_SIZE: Final = 1000
"""Ids in one block: one store write in a thousand new producers (Kafka's ProducerIdsBlock)."""

CLAIM_TRIES_MAX: Final = 100
"""Every lost race means that another broker won one; a hundred in a row mean a broken store."""


def allocate(
    context: ControllerContext, broker: int, broker_epoch: int | None, *, above: int
) -> Transition[int]:
    """The first id of a new block, which is larger than `above`.

    `broker_epoch` is that of the broker which asks the controller, None where this one claims for
    itself. Raises KafkaError BROKER_ID_NOT_REGISTERED, STALE_BROKER_EPOCH, and
    COORDINATOR_LOAD_IN_PROGRESS where all races are lost, or the store refuses it without one.
    """
    if broker_epoch is not None:
        registered = context.image.brokers.get(broker)
        if registered is None:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
        if registered.epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    path = ProducerIdBlockZnode.PATH
    seen: StoredProducerIdBlock | None = None
    fault: KafkaError | None = None
    for _ in range(CLAIM_TRIES_MAX):
        latest: StoredProducerIdBlock | None = yield ReadProducerIdBlock()
        if fault is not None and latest == seen:  # No other broker has won: this is no race.
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, fault.message)
        start = max(0 if latest is None else latest.block.last + 1, above + 1)
        data = ProducerIdBlockZnode.encode(ProducerIdBlock(broker, start, start + BLOCK_SIZE - 1))
        claim = Create(path, data) if latest is None else SetData(path, data, latest.version)
        refused = yield from write_each({path: [claim]})
        if not refused:
            return start
        seen, fault = latest, refused[path]
    message = f"lost {CLAIM_TRIES_MAX} races for a block of producer ids"
    raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)
