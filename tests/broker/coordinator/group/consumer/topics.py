"""Topics that are made, grow and go, and what a consumer is told to read of them."""

from __future__ import annotations

from uuid import UUID

from barnabas_broker.cluster.image import MetadataImage, PartitionState, TopicImage
from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import Assignment


def topic(name: str, partitions: int, number: int) -> TopicImage:
    """A topic whose id is a number."""
    state = PartitionState((0,), (0,), 0, 0, 0)
    return TopicImage(name, UUID(int=number), (state,) * partitions)


def read_target(assignment: Assignment) -> Partitions:
    """The partitions in the answer to a heartbeat."""
    return frozenset(
        (each.topic_id, number)
        for each in assignment.topic_partitions
        for number in each.partitions
    )


class Topics:
    """The image that a shard goes by: a part of whoever has one."""

    shard: Shard
    image = MetadataImage(cluster_id="c")
    topic_ids = 0

    def put_topic(self, name: str, partitions: int) -> None:
        """Make a topic, or give one this many partitions."""
        known = self.image.topic(name)
        if known is None:
            self.topic_ids += 1
        number = self.topic_ids if known is None else known.id.int
        self.image = self.image.with_changes(put=(topic(name, partitions, number),))
        self.shard.on_image(self.image)

    def drop_topic(self, name: str) -> None:
        """Delete a topic."""
        self.image = self.image.with_changes(remove=frozenset({name}))
        self.shard.on_image(self.image)
