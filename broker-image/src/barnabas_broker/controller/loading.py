"""Reads the cluster out of the coordination store into values an image is made of."""

from collections.abc import Mapping, Sequence

from barnabas_broker.cluster.image import DEFAULT_BROKER, NO_LEADER, PartitionState, TopicImage
from barnabas_broker.zk.store import CoordinationStore
from barnabas_broker.zk.znodes import (
    CONFIG_BROKERS,
    DEFAULT_ENTITY,
    ConfigZnode,
    LeaderAndIsr,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.ids import ZERO_UUID
from barnabas_zookeeper.errors import NoNodeError

# A partition that has replicas but was never led: only tools make such, by writing the topic alone.
_NEVER_LED = LeaderAndIsr(leader=NO_LEADER, leader_epoch=-1, isr=(), controller_epoch=-1)


def load_assignment(store: CoordinationStore, topic: str) -> TopicAssignment:
    """The znode of a topic. Raises NoNodeError, MalformedZnodeError."""
    znode = TopicZnode(topic)
    return znode.decode(store.get(znode.path)[0])


def load_partition_states(
    store: CoordinationStore, topic: str, partitions: Sequence[int]
) -> dict[int, tuple[LeaderAndIsr, int] | None]:
    """The state of each partition and the version of its znode, None where there is none yet."""
    znodes = [PartitionStateZnode(topic, partition) for partition in partitions]
    found = store.get_many([znode.path for znode in znodes])
    return {
        znode.partition: None if got is None else (znode.decode(got[0]), got[1].version)
        for znode, got in zip(znodes, found, strict=True)
    }


def load_config(store: CoordinationStore, znode: ConfigZnode) -> dict[str, str]:
    """What was set for an entity; nothing where it has no znode. Raises MalformedZnodeError."""
    try:
        return znode.decode(store.get(znode.path)[0])
    except NoNodeError:
        return {}


def load_topic(store: CoordinationStore, name: str) -> TopicImage:
    """A topic with all that is known of it. Raises NoNodeError, MalformedZnodeError."""
    assignment = load_assignment(store, name)
    states = load_partition_states(store, name, sorted(assignment.partitions))
    partitions = tuple(
        _partition(assignment.partitions[number], loaded) for number, loaded in states.items()
    )
    config = load_config(store, ConfigZnode.for_topic(name))
    return TopicImage(name, assignment.id or ZERO_UUID, partitions, config)


def _partition(
    assignment: ReplicaAssignment, loaded: tuple[LeaderAndIsr, int] | None
) -> PartitionState:
    state, version = loaded if loaded is not None else (_NEVER_LED, 0)
    return PartitionState(
        replicas=assignment.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        adding=assignment.adding,
        removing=assignment.removing,
        partition_epoch=version,
    )


def load_broker_configs(store: CoordinationStore) -> Mapping[str, Mapping[str, str]]:
    """Dynamic broker settings by broker id, the cluster-wide ones under DEFAULT_BROKER."""
    configs = {}
    for name in store.children(f"/config/{CONFIG_BROKERS}"):
        key = DEFAULT_BROKER if name == DEFAULT_ENTITY else name
        configs[key] = load_config(store, ConfigZnode(CONFIG_BROKERS, name))
    return configs
