"""In-sync replicas that leaders write themselves, as brokers before 2.7-IV2 do.

A leader writes the state of its partition provided that it is unchanged, names in a
notification which partitions it has written, and the controller reads those again (Kafka's
`ReplicationUtils`, `KafkaZkClient.propagateIsrChanges`). The store refuses a write by an older
version of the state, and the writer reads it again.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.controller.isr_changes import stored
from barnabas_broker.zk.store import CoordinationStore, Create, SetData
from barnabas_broker.zk.znodes import (
    IsrChangeZnode,
    LeaderAndIsr,
    MalformedZnodeError,
    PartitionStateZnode,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import BadVersionError, NoNodeError

_log = logging.getLogger(__name__)

PARTITIONS_PER_NOTIFICATION: Final = 1000
"""A third of what a znode can hold, were all names as long as they may be."""


def write_in_sync(
    store: CoordinationStore, tp: TopicPartition, wanted: PartitionState, *, now_ms: int
) -> PartitionState:
    """Write a state whose partition epoch is the one that it follows on; the state it is then.

    Raises KafkaError INVALID_UPDATE_VERSION where another one has been written, and
    CoordinationError where the outcome is unknown: it may be asked for again then.
    """
    znode = PartitionStateZnode(tp.topic, tp.partition)
    state = stored(wanted)
    try:
        operation = SetData(znode.path, znode.encode(state), wanted.partition_epoch)
        store.commit([operation], now_ms=now_ms)
    except NoNodeError:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION) from None
    except BadVersionError:
        return replace(wanted, partition_epoch=_written_before(store, znode, state))
    return replace(wanted, partition_epoch=wanted.partition_epoch + 1)


def _written_before(
    store: CoordinationStore, znode: PartitionStateZnode, state: LeaderAndIsr
) -> int:
    """The version of a state that was written by an earlier try, whose answer was lost."""
    try:
        data, stat = store.get(znode.path)
        if znode.decode(data) == state:
            return stat.version
    except (MalformedZnodeError, NoNodeError) as error:
        _log.warning("%s", error)
    raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def notify_controller(
    store: CoordinationStore, partitions: Iterable[TopicPartition], *, now_ms: int
) -> None:
    """Notify the controller of states that were written. Raises as `store.commit`."""
    ordered = sorted(partitions)
    for start in range(0, len(ordered), PARTITIONS_PER_NOTIFICATION):
        some = ordered[start : start + PARTITIONS_PER_NOTIFICATION]
        note = Create(IsrChangeZnode.PREFIX, IsrChangeZnode.encode(some), sequential=True)
        store.commit([note], now_ms=now_ms)


def notified(store: CoordinationStore, paths: Sequence[str]) -> set[TopicPartition]:
    """The partitions that notifications name; what cannot be read names none."""
    found: set[TopicPartition] = set()
    for path, got in zip(paths, store.get_many(paths), strict=True):
        try:
            if got is not None:
                found.update(IsrChangeZnode.decode(path, got[0]))
        except MalformedZnodeError as error:
            _log.error("Change notification ignored: %s", error)
    return found
