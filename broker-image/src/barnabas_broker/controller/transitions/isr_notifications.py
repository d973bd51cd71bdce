"""ISRs that leaders write themselves, as brokers before 2.7-IV2 do, with notifications.

Kafka's `KafkaController.processIsrChangeNotification`.
"""

from barnabas_broker.controller.commands import ReadIsrChanges, Transition, Write
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.transitions.partition_changes import refresh
from barnabas_broker.zk.operations import Delete
from barnabas_kafka.ids import TopicPartition


def isr_changes_written(
    context: ControllerContext, *, anything: bool
) -> Transition[set[TopicPartition]]:
    """Read what leaders say they have written, and take their notifications away.

    All partitions where a write of this controller was refused: it may have been for that. A
    notification goes last, so that one that was not acted on is read again.
    """
    found: tuple[set[TopicPartition], list[str]] = yield ReadIsrChanges()
    partitions, paths = found
    if anything and context.stale:
        partitions.update(context.partitions())
    yield from refresh(context, partitions)
    if paths:
        yield Write([Delete(path) for path in paths])
    return partitions
