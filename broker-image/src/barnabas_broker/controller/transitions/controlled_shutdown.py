"""Controlled shutdown: what a broker leads is handed over before it stops.

Kafka's `KafkaController.doControlledShutdown`. The broker asks again until it leads nothing any
more, or gives up.
"""

import logging

from barnabas_broker.controller.commands import Transition
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.elections import elect_for_shutdown, without_replica
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.controller.transitions.partition_changes import change, refresh
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)


def controlled_shutdown(
    context: ControllerContext, broker: int, broker_epoch: int
) -> Transition[list[TopicPartition]]:
    """Prepare for a broker to stop; returns what it leads and no other one can.

    Raises KafkaError: STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE, or that of a failed write.
    """
    registered = context.image.brokers.get(broker)
    if registered is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker} does not exist.")
    if -1 < broker_epoch < registered.epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    _log.info("Controlled shutdown started: broker=%d", broker)
    yield from refresh(context, [tp for tp, _ in context.held_by(broker)])
    stopping = context.stopping | {broker}
    changes: dict[TopicPartition, LeaderAndIsr] = {}
    for tp, state in context.held_by(broker):
        if state.leader == broker:
            changed = elect_for_shutdown(
                state.replicas,
                stored(state),
                live=context.image.brokers.keys() - context.offline.get(tp, frozenset()),
                stopping=stopping,
                controller_epoch=context.epoch,
            )
        else:
            changed = without_replica(stored(state), broker, controller_epoch=context.epoch)
        if changed is not None:
            changes[tp] = changed
    context.stopping = stopping
    yield from change(context, changes)
    return [tp for tp, state in context.held_by(broker) if state.leader == broker]
