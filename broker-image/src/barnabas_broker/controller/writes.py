"""What each decision means in znodes: lists of operations to be committed together.

The znodes are the ones that Apache's controller and brokers write for the same decision, so that
its tools see a topic, a deletion or a change of settings in the way they expect. What they write
in several steps is one transaction here.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.controller.elections import first_leader
from barnabas_broker.zk.store import CoordinationStore, Create, Delete, Operation, SetData
from barnabas_broker.zk.znodes import (
    ConfigChangeZnode,
    ConfigZnode,
    DeleteTopicZnode,
    LeaderAndIsr,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)

# How long brokers have to notice a change of settings (Kafka's own figure).
CHANGE_NOTIFICATION_TTL_MS = 15 * 60 * 1000


def missing_parents(store: CoordinationStore, paths: Iterable[str]) -> list[Operation]:
    """Creations, without data, of the given znodes and all above them that do not exist."""
    wanted: dict[str, None] = {}
    for path in paths:
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            above = "/" + "/".join(parts[:depth])
            if above not in wanted and store.exists(above) is None:
                wanted[above] = None
    return [Create(path) for path in wanted]


def put(store: CoordinationStore, path: str, data: bytes | None) -> Operation:
    """Write a znode that may or may not exist; its parent must."""
    return Create(path, data) if store.exists(path) is None else SetData(path, data)


def create_topic(
    store: CoordinationStore,
    name: str,
    topic_id: UUID,
    *,
    states: Sequence[tuple[tuple[int, ...], LeaderAndIsr]],
    config: Mapping[str, str],
) -> list[Operation]:
    """A topic with one (replicas, state) per partition, and its settings."""
    assignment = TopicAssignment(
        topic_id, {number: ReplicaAssignment(each[0]) for number, each in enumerate(states)}
    )
    topic, settings = TopicZnode(name), ConfigZnode.for_topic(name)
    operations: list[Operation] = [
        put(store, settings.path, settings.encode(config)),
        Create(topic.path, topic.encode(assignment)),
        Create(topic.partitions_path),
    ]
    for number, (_, state) in enumerate(states):
        operations += create_partition(name, number, state)
    return operations


def create_partition(topic: str, partition: int, state: LeaderAndIsr) -> list[Operation]:
    """The znodes of one partition."""
    znode = PartitionStateZnode(topic, partition)
    return [Create(znode.parent), Create(znode.path, znode.encode(state))]


def first_states(
    replicas: Iterable[tuple[int, ...]],
    *,
    controller_epoch: int,
    without: Collection[int] = (),
) -> list[tuple[tuple[int, ...], LeaderAndIsr]]:
    """What new partitions with those replicas start as; brokers in `without` are not in sync yet.

    Unless there are no others.
    """
    states = []
    for each in replicas:
        alive = tuple(broker for broker in each if broker not in without) or each
        states.append((each, first_leader(alive, controller_epoch=controller_epoch)))
    return states


def place_topic(topic: TopicImage) -> Operation:
    """The assignment of a topic, as its image has it."""
    replicas = {
        number: ReplicaAssignment(each.replicas, each.adding, each.removing)
        for number, each in enumerate(topic.partitions)
    }
    znode = TopicZnode(topic.name)
    return SetData(znode.path, znode.encode(TopicAssignment(topic.id, replicas)))


def grow_topic(
    topic: TopicImage, added: Sequence[tuple[tuple[int, ...], LeaderAndIsr]]
) -> list[Operation]:
    """More partitions behind those that a topic has."""
    replicas = [
        ReplicaAssignment(each.replicas, each.adding, each.removing) for each in topic.partitions
    ]
    present = len(replicas)
    replicas += [ReplicaAssignment(each) for each, _ in added]
    znode = TopicZnode(topic.name)
    data = znode.encode(TopicAssignment(topic.id, dict(enumerate(replicas))))
    operations: list[Operation] = [SetData(znode.path, data)]
    for number, (_, state) in enumerate(added, start=present):
        operations += create_partition(topic.name, number, state)
    return operations


def delete_topic(store: CoordinationStore, name: str) -> list[Operation]:
    """Everything about a topic goes; a mark stays that says its logs are to go, too.

    The mark comes first: a deletion that is cut off between two transactions is still wished for.
    """
    operations: list[Operation] = []
    mark = DeleteTopicZnode(name).path
    if store.exists(mark) is None:
        operations.append(Create(mark))
    operations += delete_subtree(store, TopicZnode(name).path)
    settings = ConfigZnode.for_topic(name).path
    if store.exists(settings) is not None:
        operations.append(Delete(settings))
    return operations


def delete_subtree(store: CoordinationStore, path: str) -> list[Operation]:
    """Delete a znode and all below it, children first; nothing where it is gone already.

    Each level is asked for at once. One znode after the other, a topic of 400 partitions was 1,600
    round trips, during which the controller did nothing else.
    """
    children: dict[str, list[str]] = {}
    level = [path]
    while level:
        answers = zip(level, store.children_many(level), strict=True)
        found = {
            above: [f"{above}/{it}" for it in names]
            for above, names in answers
            if names is not None
        }
        children |= found
        level = [each for below in found.values() for each in below]
    return [Delete(each) for each in _bottom_up(path, children)]


def _bottom_up(path: str, children: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A znode behind all below it; those that are not in `children` do not exist."""
    if path in children:
        for child in children[path]:
            yield from _bottom_up(child, children)
        yield path


def change_config(
    store: CoordinationStore, znode: ConfigZnode, config: Mapping[str, str], *, now_ms: int
) -> list[Operation]:
    """Replace the settings of an entity and tell brokers; old notifications go."""
    operations = [put(store, znode.path, znode.encode(config))]
    paths = [f"{ConfigChangeZnode.ROOT}/{it}" for it in store.children(ConfigChangeZnode.ROOT)]
    for path, found in zip(paths, store.get_many(paths), strict=True):
        if found is not None and now_ms - found[1].ctime_ms > CHANGE_NOTIFICATION_TTL_MS:
            operations.append(Delete(path))
    change = ConfigChangeZnode.encode(znode)
    operations.append(Create(ConfigChangeZnode.PREFIX, change, sequential=True))
    return operations
