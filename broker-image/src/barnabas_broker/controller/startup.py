"""Becoming the controller of what a coordination store holds.

In order: find or make the cluster's identity, take the office with the next controller epoch,
finish or note the deletions that were asked for, give ids to topics from before there were any, and
elect a leader for each partition. A crash on the way leaves what the next start completes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.election import elect_at_start, first_leader
from barnabas_broker.controller.identity import new_cluster_id, new_id
from barnabas_broker.controller.loading import (
    load_assignment,
    load_broker_configs,
    load_partition_states,
    load_topic,
)
from barnabas_broker.controller.office import (
    Office,
    commit_fenced,
    refuse_company,
    take_office,
)
from barnabas_broker.controller.writes import (
    create_partition,
    delete_topic,
    missing_parents,
)
from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    Operation,
    SetData,
)
from barnabas_broker.zk.znodes import (
    PERSISTENT_PATHS,
    ClusterIdZnode,
    DeleteTopicZnode,
    FeatureZnode,
    LeaderAndIsr,
    PartitionStateZnode,
    TopicAssignment,
    TopicZnode,
)
from barnabas_zookeeper.errors import NoNodeError


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What a controller starts with.

    `deleting` are topics that are gone but whose logs may still lie on disk.
    """

    image: MetadataImage
    office: Office
    deleting: frozenset[str]


def take_over(
    store: CoordinationStore,
    *,
    broker_id: int,
    cluster_id: str | None,
    deletion_enabled: bool,
    random: Random,
    now_ms: int,
    found_new: bool = True,
) -> TakenOver:
    """Make `broker_id` the controller.

    `cluster_id` is the one in meta.properties, None for new directories; `found_new` says whether
    a store without an identity takes that one. Raises CoordinationError where the store belongs
    to another cluster, OccupiedError where another broker lives in it, MalformedZnodeError where
    it holds what nobody can read.
    """
    make_parents(store, now_ms=now_ms)
    refuse_company(store, broker_id)
    identity = _identify(store, cluster_id, random, found_new=found_new, now_ms=now_ms)
    office = take_office(store, broker_id=broker_id, now_ms=now_ms)
    operations: list[Operation] = []
    if store.exists(FeatureZnode.PATH) is None:
        operations.append(Create(FeatureZnode.PATH, FeatureZnode().encode()))
    deletions, doomed, deleting = _deletions(store, deletion_enabled=deletion_enabled)
    operations += deletions
    for topic in store.children(TopicZnode.ROOT):
        if topic not in doomed:
            operations += lead_topic(
                store, topic, broker_id=broker_id, epoch=office.epoch, random=random
            )
    commit_fenced(store, office, operations, now_ms=now_ms)
    return TakenOver(_load_image(store, identity, broker_id), office, deleting)


def make_parents(store: CoordinationStore, *, now_ms: int) -> None:
    """Make the znodes that brokers expect to be there."""
    parents = missing_parents(store, [*PERSISTENT_PATHS, "/cluster"])
    if parents:
        store.commit(parents, now_ms=now_ms)


def _identify(
    store: CoordinationStore,
    cluster_id: str | None,
    random: Random,
    *,
    found_new: bool,
    now_ms: int,
) -> str:
    """The id of the cluster in the store, made if there is none."""
    try:
        stored = ClusterIdZnode.decode(store.get(ClusterIdZnode.PATH)[0])
    except NoNodeError:
        if cluster_id is not None and not found_new:
            raise CoordinationError(
                f"the log directories belong to cluster {cluster_id} (meta.properties), but there "
                f"is no {ClusterIdZnode.PATH}; is the chroot in zookeeper.connect the right one?"
            ) from None
        identity = cluster_id or new_cluster_id(random)
        store.commit([Create(ClusterIdZnode.PATH, ClusterIdZnode.encode(identity))], now_ms=now_ms)
        return identity
    if cluster_id is not None and cluster_id != stored:
        raise CoordinationError(
            f"the log directories belong to cluster {cluster_id} (meta.properties), "
            f"the coordination data to cluster {stored}"
        )
    return stored


def _deletions(
    store: CoordinationStore, *, deletion_enabled: bool
) -> tuple[list[Operation], frozenset[str], frozenset[str]]:
    """What to do about marks under /admin/delete_topics; topics to delete; topics that are gone.

    A mark beside a topic is a wish: old tools write it, whatever the brokers' settings. Kafka
    grants it, or takes it away where delete.topic.enable is false. A mark without a topic is a
    deletion of ours that may not have got to the logs.
    """
    marked = store.children(DeleteTopicZnode.ROOT)
    wished = frozenset(name for name in marked if store.exists(TopicZnode(name).path) is not None)
    gone = frozenset(marked) - wished
    operations: list[Operation] = []
    for name in sorted(wished):
        if deletion_enabled:
            operations += delete_topic(store, name)
        else:
            operations.append(Delete(DeleteTopicZnode(name).path))
    if not deletion_enabled:
        return operations, frozenset(), gone
    return operations, wished, gone | wished


def lead_topic(
    store: CoordinationStore,
    topic: str,
    *,
    broker_id: int,
    epoch: int,
    random: Random,
    elect_all: bool = True,
) -> list[Operation]:
    """Elect leaders for the partitions of a topic; give the topic an id if it has none.

    Without `elect_all` only partitions that this broker can lead and does not are touched.
    """
    assignment = load_assignment(store, topic)
    operations: list[Operation] = []
    znode = TopicZnode(topic)
    if assignment.id is None:
        data = znode.encode(TopicAssignment(new_id(random), assignment.partitions))
        operations.append(SetData(znode.path, data))
    if store.exists(znode.partitions_path) is None:
        operations.append(Create(znode.partitions_path))
    states = load_partition_states(store, topic, list(assignment.partitions))
    for number, replicas in assignment.partitions.items():
        loaded = states[number]
        if loaded is None:
            # Old tools write only the topic; its partitions are made by the controller, from the
            # replicas that are alive. Without any the partition waits.
            if broker_id in replicas.replicas:
                first = first_leader((broker_id,), controller_epoch=epoch)
                operations += _missing_partition(store, topic, number, first)
            continue
        settled = loaded[0].leader == broker_id or broker_id not in loaded[0].isr
        if settled and not elect_all:
            continue
        state = elect_at_start(replicas, loaded[0], live={broker_id}, controller_epoch=epoch)
        state_znode = PartitionStateZnode(topic, number)
        operations.append(SetData(state_znode.path, state_znode.encode(state), loaded[1]))
    return operations


def _missing_partition(
    store: CoordinationStore, topic: str, number: int, state: LeaderAndIsr
) -> list[Operation]:
    """The znodes of a partition; its parent may be there from a creation that was cut off."""
    operations = create_partition(topic, number, state)
    if store.exists(PartitionStateZnode(topic, number).parent) is not None:
        return operations[1:]
    return operations


def _load_image(store: CoordinationStore, cluster_id: str, broker_id: int) -> MetadataImage:
    topics = {name: load_topic(store, name) for name in store.children(TopicZnode.ROOT)}
    broker_configs: Mapping[str, Mapping[str, str]] = load_broker_configs(store)
    return MetadataImage(
        cluster_id=cluster_id,
        controller_id=broker_id,
        topics=topics,
        topic_ids={topic.id: name for name, topic in topics.items()},
        broker_configs=broker_configs,
        version=1,
    )
