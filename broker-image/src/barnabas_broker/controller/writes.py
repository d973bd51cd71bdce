"""Writes that depend on what is in the store: of parents that may be missing, and of settings."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    Operation,
    SetData,
)
from barnabas_broker.zk.znodes import ConfigChangeZnode, ConfigZnode
from barnabas_zookeeper.errors import NodeExistsError

# How long brokers have to notice a change of settings (Kafka's own figure).
CHANGE_NOTIFICATION_TTL_MS = 15 * 60 * 1000

NOTIFICATIONS_READ: Final = 2
"""The oldest that are looked at for each one that is added, so that none stay: to look at all of
them, a change of a thousand users would read half a million. Names are in the order of time."""

PARENT_TRIES_MAX: Final = 100
"""Each lost race means that another new broker created some; they are not that many."""


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


def create_parents(
    store: CoordinationStore, paths: Collection[str], *, now_ms: int, purpose: str
) -> None:
    """Create the given znodes where they are missing; other brokers may do so at the same time."""
    for _ in range(PARENT_TRIES_MAX):
        parents = missing_parents(store, paths)
        if not parents:
            return
        try:
            store.commit(parents, now_ms=now_ms)
        except NodeExistsError:  # Another broker was quicker.
            continue
        return
    raise CoordinationError(f"lost {PARENT_TRIES_MAX} races for {purpose}")


def put(store: CoordinationStore, path: str, data: bytes | None) -> Operation:
    """Write a znode that may or may not exist; its parent must."""
    return Create(path, data) if store.exists(path) is None else SetData(path, data)


def change_config(
    store: CoordinationStore, znode: ConfigZnode, config: Mapping[str, str], *, now_ms: int
) -> list[Operation]:
    """Replace the settings of an entity and notify brokers; the oldest notifications go."""
    return change_configs(store, {znode: config}, now_ms=now_ms)


def change_configs(
    store: CoordinationStore, configs: Mapping[ConfigZnode, Mapping[str, str]], *, now_ms: int
) -> list[Operation]:
    """The same for several entities."""
    operations: list[Operation] = [
        put(store, znode.path, znode.encode(config)) for znode, config in configs.items()
    ]
    oldest = store.children(ConfigChangeZnode.ROOT)[: NOTIFICATIONS_READ * len(configs)]
    paths = [f"{ConfigChangeZnode.ROOT}/{it}" for it in oldest]
    for path, found in zip(paths, store.get_many(paths), strict=True):
        if found is not None and now_ms - found[1].ctime_ms > CHANGE_NOTIFICATION_TTL_MS:
            operations.append(Delete(path))
    for znode in configs:
        change = ConfigChangeZnode.encode(znode)
        operations.append(Create(ConfigChangeZnode.PREFIX, change, sequential=True))
    return operations
