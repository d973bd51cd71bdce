"""Which replicas cannot be used although their brokers are alive, as these brokers answer.

Kafka's `ControllerContext.replicasOnOfflineDirs`. A broker answers LeaderAndIsr for each partition
with KAFKA_STORAGE_ERROR where its log directory takes nothing, and says NONE when it does again.
A broker whose directories have changed leaves a note in /log_dir_event_notification, upon which
it is asked about everything; one that registers again is asked anyway, and begins anew.

An answer counts only for the leader epoch that it was given in: in a later one the broker is told,
and answers, once more. So two replicas that can each be done without are not both left out by
answers to one state.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.invariants import violated
from barnabas_broker.zk.store import Delete, Watch
from barnabas_broker.zk.znodes import LogDirEventZnode, MalformedZnodeError
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)

Offline = Mapping[TopicPartition, frozenset[int]]
"""The brokers, by partition, whose replica cannot be used."""


@dataclass(frozen=True, slots=True)
class StorageAnswer:
    """What a broker says about its replica of a partition, in that leader epoch."""

    leader_epoch: int
    usable: bool


Answered = Mapping[TopicPartition, StorageAnswer]


def after_answers(
    offline: Offline, broker: int, answered: Answered, image: MetadataImage
) -> dict[TopicPartition, frozenset[int]]:
    """The partitions for which a broker's answers change something, and who is offline there."""
    changed: dict[TopicPartition, frozenset[int]] = {}
    for tp, answer in answered.items():
        state = image.partition(tp)
        if state is None or broker not in state.replicas:
            continue
        if state.leader_epoch != answer.leader_epoch:
            continue
        before = offline.get(tp, frozenset())
        after = before - {broker} if answer.usable else before | {broker}
        assert (broker in after) is not answer.usable, violated("who cannot use a replica is noted")
        if after != before:
            changed[tp] = after
    return changed


def without_brokers(
    offline: Offline, brokers: Collection[int]
) -> dict[TopicPartition, frozenset[int]]:
    """The partitions for which these brokers are on record, and who else is offline there."""
    return {tp: each.difference(brokers) for tp, each in offline.items() if each & {*brokers}}


class LogDirNotes:
    """The notes of brokers whose log directories have changed; read by the controller."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    def read(self) -> tuple[set[int], list[str]]:
        """The brokers to be asked, and the notes that say so; watches for more.

        Raises CoordinationError, ZooKeeperError.
        """
        store = self._metadata.store
        store.watch(LogDirEventZnode.ROOT, Watch.CHILDREN)
        paths = [
            f"{LogDirEventZnode.ROOT}/{name}" for name in store.children(LogDirEventZnode.ROOT)
        ]
        brokers: set[int] = set()
        for path, found in zip(paths, store.get_many(paths), strict=True):
            if found is None:
                continue
            try:
                brokers.add(LogDirEventZnode.decode(path, found[0]))
            except MalformedZnodeError as error:
                _log.error("Malformed znode: %s; deleting it", error)
        return brokers, paths

    def remove(self, paths: Collection[str], *, now_ms: int) -> None:
        """Take away notes that have been acted on. Raises KafkaError as `MetadataStore.write`."""
        if paths:
            self._metadata.write([Delete(path) for path in paths], now_ms=now_ms)
