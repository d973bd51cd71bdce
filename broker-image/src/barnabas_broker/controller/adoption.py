"""Topics found on disk that the coordination data does not know, and their adoption.

An Apache broker's data directory holds its topics' logs and ids, but the topics themselves were
in its ZooKeeper. Opened by an embedded broker they become topics of this broker: with the id in
`partition.metadata`, with as many partitions as the highest number found, led from an epoch above
any in their logs, and with the broker's settings, since the topics' own are not on disk.

Pure; the shell writes what is planned here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A topic to make or to grow.

    `states` are those of the partitions from number `first` on; partitions that have no
    directory are among them where one with a higher number has.
    """

    topic: str
    id: UUID | None
    first: int
    states: tuple[LeaderAndIsr, ...]
    missing: tuple[int, ...]


def plan_adoptions(
    found: Mapping[TopicPartition, UUID | None],
    image: MetadataImage,
    *,
    broker_id: int,
    controller_epoch: int,
    epochs: Mapping[TopicPartition, int],
    ignored: Collection[str],
) -> list[Adoption]:
    """What to add to the image so that every partition found is in it, topics by name.

    `epochs` holds the latest leader epoch in each log that has one. `ignored` topics are being
    deleted. Partitions of a topic that disagree about its id get the one of the lowest number.
    """
    numbers: dict[str, list[int]] = {}
    for topic, partition in sorted(found):
        if topic not in ignored:
            numbers.setdefault(topic, []).append(partition)
    adoptions = []
    for topic, present in numbers.items():
        known = image.topic(topic)
        first = 0 if known is None else len(known.partitions)
        added = range(first, max(present) + 1)
        if not added:
            continue
        ids = (found[TopicPartition(topic, partition)] for partition in present)
        states = tuple(
            LeaderAndIsr(
                leader=broker_id,
                leader_epoch=epochs.get(TopicPartition(topic, partition), -1) + 1,
                isr=(broker_id,),
                controller_epoch=controller_epoch,
            )
            for partition in added
        )
        adoptions.append(
            Adoption(
                topic=topic,
                id=next((each for each in ids if each is not None), None),
                first=first,
                states=states,
                missing=tuple(sorted(set(added) - set(present))),
            )
        )
    return adoptions
