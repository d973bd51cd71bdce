"""Reads the cluster out of the coordination store into values an image is made of."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas_broker.cluster.image import (
    DEFAULT_BROKER,
    NO_LEADER,
    BrokerRegistration,
    PartitionState,
    TopicImage,
)
from barnabas_broker.cluster.quota_entity import QuotaEntity, quotas_of
from barnabas_broker.zk.quota_znodes import quota_znode, stored_entities
from barnabas_broker.zk.store import CoordinationStore, Stat
from barnabas_broker.zk.znodes import (
    CONFIG_BROKERS,
    CONFIG_USERS,
    DEFAULT_ENTITY,
    BrokerZnode,
    ConfigZnode,
    LeaderAndIsr,
    MalformedZnodeError,
    PartitionStateZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.ids import ZERO_UUID
from barnabas_zookeeper.errors import NoNodeError

_log = logging.getLogger(__name__)

# A partition that has replicas but was never led: only tools make such, by writing the topic alone.
_NEVER_LED = LeaderAndIsr(leader=NO_LEADER, leader_epoch=-1, isr=(), controller_epoch=-1)


Tell = Callable[[MalformedZnodeError], None]
"""Told of what cannot be read."""


def _give_up(error: MalformedZnodeError) -> None:
    raise error


def log_malformed(error: MalformedZnodeError) -> None:
    """Log it; what the znode is about stays as it was."""
    _log.error("Malformed znode: %s; keeping the previous state", error)


class StoredState(NamedTuple):
    """A partition's state, with the version of its znode and the transaction that last wrote it."""

    state: LeaderAndIsr
    version: int
    mzxid: int


def load_partition_states(
    store: CoordinationStore, topic: str, partitions: Sequence[int], *, tell: Tell = _give_up
) -> dict[int, StoredState | None]:
    """The state of each partition, None where there is none yet; unreadable ones are told."""
    znodes = [PartitionStateZnode(topic, partition) for partition in partitions]
    found = store.get_many([znode.path for znode in znodes])
    states = {}
    for znode, got in zip(znodes, found, strict=True):
        try:
            states[znode.partition] = _stored(znode, got)
        except MalformedZnodeError as error:
            tell(error)
    return states


def _stored(
    znode: PartitionStateZnode, got: tuple[bytes | None, Stat] | None
) -> StoredState | None:
    if got is None:
        return None
    data, stat = got
    return StoredState(znode.decode(data), stat.version, stat.mzxid)


def load_config(store: CoordinationStore, znode: ConfigZnode) -> dict[str, str]:
    """What was set for an entity; nothing where it has no znode. Raises MalformedZnodeError."""
    try:
        return znode.decode(store.get(znode.path)[0])
    except NoNodeError:
        return {}


def load_configs(
    store: CoordinationStore, znodes: Sequence[ConfigZnode], *, tell: Tell = _give_up
) -> dict[str, dict[str, str]]:
    """What was set for each of these entities, by name; those that cannot be read are left out."""
    found = store.get_many([znode.path for znode in znodes])
    configs = {}
    for znode, got in zip(znodes, found, strict=True):
        try:
            configs[znode.name] = {} if got is None else znode.decode(got[0])
        except MalformedZnodeError as error:
            tell(error)
    return configs


def load_brokers(
    store: CoordinationStore, *, tell: Tell = _give_up
) -> dict[int, BrokerRegistration]:
    """The brokers that are registered, by id; those that cannot be read are left out, and told."""
    ids = sorted(int(name) for name in store.children(BrokerZnode.ROOT) if name.isdecimal())
    znodes = [BrokerZnode(number) for number in ids]
    found = store.get_many([znode.path for znode in znodes])
    brokers = {}
    for znode, got in zip(znodes, found, strict=True):
        try:
            if got is not None:
                brokers[znode.id] = znode.decode(got[0], epoch=got[1].czxid)
        except MalformedZnodeError as error:
            tell(error)
    return brokers


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic with all that is on record of it; a partition's state is None where it has none."""

    name: str
    assignment: TopicAssignment
    states: Mapping[int, StoredState | None]
    config: Mapping[str, str]

    @property
    def image(self) -> TopicImage:
        """The same as brokers serve it."""
        partitions = tuple(
            _partition(replicas, self.states[number])
            for number, replicas in sorted(self.assignment.partitions.items())
        )
        return TopicImage(self.name, self.assignment.id or ZERO_UUID, partitions, self.config)


def load_topics(
    store: CoordinationStore, names: Iterable[str], *, tell: Tell = _give_up
) -> dict[str, StoredTopic]:
    """Those of these topics that there are, by name; what cannot be read is left out, and told.

    However many they are, that takes three rounds: all assignments, all states, all settings.
    """
    znodes = [TopicZnode(name) for name in names]
    assignments: dict[str, TopicAssignment] = {}
    for znode, got in zip(znodes, store.get_many([it.path for it in znodes]), strict=True):
        try:
            if got is not None:
                assignments[znode.topic] = znode.decode(got[0])
        except MalformedZnodeError as error:
            tell(error)
    places = [
        PartitionStateZnode(name, number)
        for name, assignment in assignments.items()
        for number in assignment.partitions
    ]
    states: dict[str, dict[int, StoredState | None]] = {name: {} for name in assignments}
    for place, got in zip(places, store.get_many([it.path for it in places]), strict=True):
        try:
            if place.topic in states:
                states[place.topic][place.partition] = _stored(place, got)
        except MalformedZnodeError as error:
            del states[place.topic]
            tell(error)
    configs = load_configs(store, [ConfigZnode.for_topic(name) for name in states], tell=tell)
    return {
        name: StoredTopic(name, assignments[name], states[name], config)
        for name, config in configs.items()
    }


def load_topic(store: CoordinationStore, name: str) -> TopicImage:
    """A topic with all that is known of it. Raises NoNodeError, MalformedZnodeError."""
    found = load_topics(store, [name])
    if name not in found:
        raise NoNodeError(TopicZnode(name).path)
    return found[name].image


def _partition(assignment: ReplicaAssignment, loaded: StoredState | None) -> PartitionState:
    state, version = (_NEVER_LED, 0) if loaded is None else (loaded.state, loaded.version)
    return PartitionState(
        replicas=assignment.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        controller_epoch=state.controller_epoch,
        adding=assignment.adding,
        removing=assignment.removing,
        partition_epoch=version,
        recovering=state.recovering,
    )


def load_user_configs(
    store: CoordinationStore, names: Iterable[str] | None = None
) -> dict[str, dict[str, str]]:
    """What is set for users, by user; `names` are those of their znodes, None for all.

    A user without settings has none here. Settings that cannot be read are logged, and count as
    none: the other users can log in all the same.
    """
    wanted = store.children(f"/config/{CONFIG_USERS}") if names is None else names
    znodes = [ConfigZnode(CONFIG_USERS, name) for name in sorted(wanted) if name != DEFAULT_ENTITY]
    configs = load_configs(store, znodes, tell=lambda error: _log.error("%s", error))
    return {it.user: configs[it.name] for it in znodes if configs.get(it.name)}


def load_quota_configs(
    store: CoordinationStore, entities: Iterable[QuotaEntity] | None = None
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of these entities, None for all; who has none has none here.

    Quotas that cannot be read are logged, and count as none.
    """
    wanted = list(stored_entities(store) if entities is None else entities)
    znodes = [quota_znode(entity) for entity in wanted]
    quotas = {}
    for entity, znode, found in zip(
        wanted, znodes, store.get_many([it.path for it in znodes]), strict=True
    ):
        try:
            config = {} if found is None else quotas_of(entity, znode.decode(found[0]))
        except ValueError as error:
            _log.error("Quotas ignored: znode=%s %s", znode.path, error)
            continue
        if config:
            quotas[entity] = config
    return quotas


def load_broker_configs(store: CoordinationStore) -> Mapping[str, Mapping[str, str]]:
    """Dynamic broker settings by broker id, the cluster-wide ones under DEFAULT_BROKER."""
    configs = {}
    for name in store.children(f"/config/{CONFIG_BROKERS}"):
        key = DEFAULT_BROKER if name == DEFAULT_ENTITY else name
        configs[key] = load_config(store, ConfigZnode(CONFIG_BROKERS, name))
    return configs
