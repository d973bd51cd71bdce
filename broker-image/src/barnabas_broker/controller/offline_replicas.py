"""Which replicas cannot be used although their brokers are alive, as these brokers answer.

Kafka's `ControllerContext.replicasOnOfflineDirs`. A broker answers LeaderAndIsr for each partition
with KAFKA_STORAGE_ERROR where its log directory takes nothing, and says NONE when it does again.
A broker whose directories have changed leaves a note in /log_dir_event_notification, upon which
it is asked about everything; one that registers again is asked anyway.

An answer counts only for the leader epoch that it was given in: in a later one the broker is asked,
and answers, once more. So two replicas that can each be done without are not both left out by
answers to one state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.invariants import violated
from barnabas_kafka.ids import TopicPartition

Offline = Mapping[TopicPartition, frozenset[int]]
"""The brokers, by partition, whose replica cannot be used."""


class StorageAnswer(NamedTuple):
    """What a broker says about its replica of a partition, in that leader epoch."""

    leader_epoch: int
    usable: bool


Answered = Mapping[TopicPartition, StorageAnswer]


def after_answers(
    offline: Offline, broker: int, answered: Answered, image: MetadataImage
) -> dict[TopicPartition, frozenset[int]]:
    """The partitions that a broker's responses change, and their offline replicas."""
    changed: dict[TopicPartition, frozenset[int]] = {}
    for tp, answer in answered.items():
        state = image.partition(tp)
        if state is None or broker not in state.replicas:
            continue
        if state.leader_epoch != answer.leader_epoch:
            continue
        before = offline.get(tp, frozenset())
        after = before - {broker} if answer.usable else before | {broker}
        assert (broker in after) is not answer.usable, violated("an unusable replica is recorded")
        if after != before:
            changed[tp] = after
    return changed


def without_brokers(
    offline: Offline, brokers: Collection[int]
) -> dict[TopicPartition, frozenset[int]]:
    """The partitions with recorded errors of these brokers, and their other offline replicas."""
    return {tp: each.difference(brokers) for tp, each in offline.items() if each & {*brokers}}
