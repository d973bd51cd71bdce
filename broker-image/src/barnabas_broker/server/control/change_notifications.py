"""Sequential znodes that notify brokers of changes (Kafka's `ZkNodeChangeNotificationListener`)."""

from typing import Final

from barnabas_broker.controller.writes import CHANGE_NOTIFICATION_TTL_MS
from barnabas_broker.zk.store import CoordinationStore, Delete, Operation, Watch

EXPIRED_AT_ONCE: Final = 100
"""Deletions of old notifications that one change carries, the oldest first."""


class ChangeNotifications:
    """The notifications below one znode, of which this broker has read some. Calls block."""

    def __init__(self, store: CoordinationStore, root: str) -> None:
        self._store = store
        self._root = root
        self._last_read = ""

    def watch(self) -> list[tuple[str, bytes | None]]:
        """Watch for more; returns those since the last call, with their paths."""
        self._store.watch(self._root, Watch.CHILDREN)
        names = self._store.children(self._root)
        paths = [f"{self._root}/{name}" for name in names if name > self._last_read]
        self._last_read = max([*names, self._last_read])
        found = zip(paths, self._store.get_many(paths), strict=True)
        return [(path, node[0]) for path, node in found if node is not None]

    def expired(self, now_ms: int) -> list[Operation]:
        """Deletions of notifications that every broker has read long since."""
        oldest = sorted(self._store.children(self._root))[:EXPIRED_AT_ONCE]
        return [
            Delete(path)
            for path in (f"{self._root}/{name}" for name in oldest)
            if (stat := self._store.exists(path)) is not None
            and now_ms - stat.ctime_ms > CHANGE_NOTIFICATION_TTL_MS
        ]
