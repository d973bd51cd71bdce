"""Reads the cluster out of the coordination store into values an image is made of."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from barnabas_broker.cluster.image import DEFAULT_BROKER, BrokerRegistration, TopicImage
from barnabas_broker.cluster.quota_entity import QuotaEntity, quotas_of
from barnabas_broker.controller.stored import StoredState, StoredTopic, TopicZnodes
from barnabas_broker.zk.quota_znodes import quota_znode, stored_entities
from barnabas_broker.zk.store import CoordinationStore, Stat
from barnabas_broker.zk.znodes import (
    CONFIG_BROKERS,
    CONFIG_USERS,
    DEFAULT_ENTITY,
    BrokerZnode,
    ConfigZnode,
    DeleteTopicZnode,
    LogDirEventZnode,
    MalformedZnodeError,
    PartitionStateZnode,
    TopicAssignment,
    TopicZnode,
)
from barnabas_zookeeper.errors import NoNodeError

_log = logging.getLogger(__name__)

OnMalformed = Callable[[MalformedZnodeError], None]
"""Called with what cannot be read."""


def _give_up(error: MalformedZnodeError) -> None:
    raise error


def log_malformed(error: MalformedZnodeError) -> None:
    """Log it; what the znode is about stays as it was."""
    _log.error("Malformed znode: %s; keeping the previous state", error)


def load_partition_states(
    store: CoordinationStore,
    topic: str,
    partitions: Sequence[int],
    *,
    on_malformed: OnMalformed = _give_up,
) -> dict[int, StoredState | None]:
    """The state of each partition, None where there is none yet; unreadable ones are reported."""
    znodes = [PartitionStateZnode(topic, partition) for partition in partitions]
    found = store.get_many([znode.path for znode in znodes])
    states = {}
    for znode, got in zip(znodes, found, strict=True):
        try:
            states[znode.partition] = _stored(znode, got)
        except MalformedZnodeError as error:
            on_malformed(error)
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
    store: CoordinationStore, znodes: Sequence[ConfigZnode], *, on_malformed: OnMalformed = _give_up
) -> dict[str, dict[str, str]]:
    """What was set for each of these entities, by name; those that cannot be read are left out."""
    found = store.get_many([znode.path for znode in znodes])
    configs = {}
    for znode, got in zip(znodes, found, strict=True):
        try:
            configs[znode.name] = {} if got is None else znode.decode(got[0])
        except MalformedZnodeError as error:
            on_malformed(error)
    return configs


def load_brokers(
    store: CoordinationStore, *, on_malformed: OnMalformed = _give_up
) -> dict[int, BrokerRegistration]:
    """The registered brokers, by id; unreadable registrations are left out and reported."""
    ids = sorted(int(name) for name in store.children(BrokerZnode.ROOT) if name.isdecimal())
    znodes = [BrokerZnode(number) for number in ids]
    found = store.get_many([znode.path for znode in znodes])
    brokers = {}
    for znode, got in zip(znodes, found, strict=True):
        try:
            if got is not None:
                brokers[znode.id] = znode.decode(got[0], epoch=got[1].czxid)
        except MalformedZnodeError as error:
            on_malformed(error)
    return brokers


def load_topics(
    store: CoordinationStore, names: Iterable[str], *, on_malformed: OnMalformed = _give_up
) -> dict[str, StoredTopic]:
    """Those topics that exist, by name; unreadable ones are left out and reported.

    However many they are, that takes three rounds: all assignments, all states, all settings.
    """
    znodes = [TopicZnode(name) for name in names]
    assignments: dict[str, TopicAssignment] = {}
    for znode, got in zip(znodes, store.get_many([it.path for it in znodes]), strict=True):
        try:
            if got is not None:
                assignments[znode.topic] = znode.decode(got[0])
        except MalformedZnodeError as error:
            on_malformed(error)
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
            on_malformed(error)
    configs = load_configs(
        store, [ConfigZnode.for_topic(name) for name in states], on_malformed=on_malformed
    )
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


def load_topic_znodes(store: CoordinationStore, name: str) -> TopicZnodes:
    """What there is of a topic, and would have to go with it.

    Each level is asked for at once. One znode after the other, a topic of 400 partitions was 1,600
    round trips, during which the controller did nothing else.
    """
    path = TopicZnode(name).path
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
    return TopicZnodes(
        tuple(_bottom_up(path, children)),
        marked=store.exists(DeleteTopicZnode(name).path) is not None,
        configured=store.exists(ConfigZnode.for_topic(name).path) is not None,
    )


def _bottom_up(path: str, children: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A znode behind all below it; those that are not in `children` do not exist."""
    if path in children:
        for child in children[path]:
            yield from _bottom_up(child, children)
        yield path


def load_existing(store: CoordinationStore, paths: Sequence[str]) -> frozenset[str]:
    """Which of these znodes there are."""
    found = store.get_many(paths)
    return frozenset(path for path, got in zip(paths, found, strict=True) if got is not None)


def load_log_dir_events(store: CoordinationStore) -> tuple[set[int], list[str]]:
    """The brokers whose log directories have changed, and the notifications that say so."""
    paths = [f"{LogDirEventZnode.ROOT}/{name}" for name in store.children(LogDirEventZnode.ROOT)]
    brokers: set[int] = set()
    for path, found in zip(paths, store.get_many(paths), strict=True):
        if found is None:
            continue
        try:
            brokers.add(LogDirEventZnode.decode(path, found[0]))
        except MalformedZnodeError as error:
            _log.error("Malformed znode: %s; deleting it", error)
    return brokers, paths


def load_user_configs(
    store: CoordinationStore, names: Iterable[str] | None = None
) -> dict[str, dict[str, str]]:
    """What is set for users, by user; `names` are those of their znodes, None for all.

    A user without settings has none here. Settings that cannot be read are logged, and count as
    none: the other users can log in all the same.
    """
    wanted = store.children(f"/config/{CONFIG_USERS}") if names is None else names
    znodes = [ConfigZnode(CONFIG_USERS, name) for name in sorted(wanted) if name != DEFAULT_ENTITY]
    configs = load_configs(store, znodes, on_malformed=lambda error: _log.error("%s", error))
    return {it.user: configs[it.name] for it in znodes if configs.get(it.name)}


def load_quota_configs(
    store: CoordinationStore, entities: Iterable[QuotaEntity] | None = None
) -> dict[QuotaEntity, dict[str, float]]:
    """The quotas of these entities, None for all; an entity without quotas is left out.

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
