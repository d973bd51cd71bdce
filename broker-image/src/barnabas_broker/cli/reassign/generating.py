"""Layouts as Kafka generates them: topics placed again, as if created on the named brokers.

What `kafka-reassign-partitions --generate` proposes. It ignores existing replicas, and so
moves nearly all; a plan moves the least.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.placement import assign_replicas
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import Layout
from barnabas_kafka.reassignment.planning import Plan, Racks

Draw = Callable[[int], int]
"""A number from 0 up and below the one given, at random."""


def generated(
    layout: Layout, racks: Racks, topics: Iterable[str], brokers: Collection[int], draw: Draw
) -> Plan:
    """New replicas of all partitions of the topics, as many for each as the first one has.

    Raises KafkaError as `assign_replicas`.
    """
    registered = [BrokerRegistration(each, (), rack=racks[each]) for each in sorted(set(brokers))]
    plan: Plan = {}
    for topic in dict.fromkeys(topics):
        numbers = sorted(tp.partition for tp in layout if tp.topic == topic)
        placed = assign_replicas(
            registered,
            partitions=len(numbers),
            replication_factor=len(layout[TopicPartition(topic, numbers[0])]),
            start_index=draw(len(registered)),
            shift=draw(len(registered)),
        )
        plan |= {TopicPartition(topic, number): placed[number] for number in numbers}
    return plan
