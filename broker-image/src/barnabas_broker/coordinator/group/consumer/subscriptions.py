"""What the members of a group subscribe to, in the metadata of now.

An expression subscribes to the topics whose whole name it matches (RE2, as in Kafka 4), but for
those that the requester may not describe, and internal ones.
"""

from collections.abc import Callable, Iterable, Mapping

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.group.consumer import expressions
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup, SeenTopic
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_kafka.protocol.embedded_consumers import (
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    TopicMetadata,
)

Expressions = Mapping[str, frozenset[str]]


def resolve(
    members: Iterable[ConsumerMember],
    known: expressions.Expressions,
    visible: Callable[[str], bool],
) -> dict[str, frozenset[str]]:
    """The topics that each expression of the members matches, of those that are there."""
    named = sorted({member.regex for member in members if member.regex})
    matched = {expression: known.matched(expression) for expression in named}
    hidden = {name for name in frozenset[str]().union(*matched.values()) if not visible(name)}
    return {
        expression: names - hidden if hidden else names for expression, names in matched.items()
    }


def expression_records(
    group: ConsumerGroup, resolved: Expressions, *, version: int, now_ms: int
) -> list[ConsumerRecord]:
    """What to write so that the group has these expressions and no others."""
    records = [
        ConsumerRecord(group.id, Kind.EXPRESSION, gone, None)
        for gone in sorted(group.expressions.keys() - resolved.keys())
    ]
    for expression, names in resolved.items():
        if group.expressions.get(expression) != names:
            value = ConsumerGroupRegularExpressionValue(
                topics=sorted(names), version=version, timestamp=now_ms
            )
            records.append(ConsumerRecord(group.id, Kind.EXPRESSION, expression, value))
    return records


def seen(names: Iterable[str], image: MetadataImage) -> dict[str, SeenTopic]:
    """Those of the topics that exist, in the order of their names."""
    topics = ((name, image.topic(name)) for name in sorted(names))
    return {
        name: SeenTopic(topic.id, len(topic.partitions))
        for name, topic in topics
        if topic is not None
    }


def topics_record(group_id: str, topics: Mapping[str, SeenTopic]) -> ConsumerRecord:
    """What the group now knows of its topics."""
    value = ConsumerGroupPartitionMetadataValue(
        topics=[
            TopicMetadata(topic_id=topic.id, topic_name=name, num_partitions=topic.partitions)
            for name, topic in topics.items()
        ]
    )
    return ConsumerRecord(group_id, Kind.TOPICS, "", value)
