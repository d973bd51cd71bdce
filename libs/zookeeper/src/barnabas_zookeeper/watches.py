"""The watches of znodes, and which of them an event fires.

ZooKeeper's rules: a watch set by reading fires once and is then gone; one on a znode's data (or
on its creation) fires on its creation, change and deletion, one on its children on
changes among them and on its own deletion. A persistent watch fires on all of these and stays; a
recursive one fires on creations, changes and deletions of the znode and of all below it. A watcher
gets an event once. Watches are a connection's: they go with it.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from enum import Enum
from typing import Generic, TypeVar

from barnabas_zookeeper.tree import Event, EventType, parent_of

Watcher = TypeVar("Watcher", bound=Hashable)


class Kind(Enum):
    """How a znode is watched."""

    DATA = "data"
    CHILDREN = "children"
    PERSISTENT = "persistent"
    RECURSIVE = "recursive"


_ONE_SHOT = {
    EventType.CREATED: (Kind.DATA,),
    EventType.DATA_CHANGED: (Kind.DATA,),
    EventType.DELETED: (Kind.DATA, Kind.CHILDREN),
    EventType.CHILDREN_CHANGED: (Kind.CHILDREN,),
}


class Watches(Generic[Watcher]):
    """Watches of all connections. Invariant: `_paths` and `_watchers` say the same."""

    def __init__(self) -> None:
        # In the order in which they came: the first to watch is the first to be notified.
        self._watchers: dict[tuple[Kind, str], dict[Watcher, None]] = {}
        self._paths: defaultdict[Watcher, set[tuple[Kind, str]]] = defaultdict(set)

    def __len__(self) -> int:
        return sum(map(len, self._paths.values()))

    def add(self, watcher: Watcher, kind: Kind, path: str) -> None:
        """Watch a znode, whether it exists or not."""
        self._watchers.setdefault((kind, path), {})[watcher] = None
        self._paths[watcher].add((kind, path))

    def has(self, watcher: Watcher, kind: Kind, path: str) -> bool:
        """Whether there is a watch of that kind."""
        return watcher in self._watchers.get((kind, path), ())

    def remove(self, watcher: Watcher, kind: Kind, path: str) -> None:
        """Watch no longer; no error where there is no watch."""
        found = self._watchers.get((kind, path), {})
        if watcher not in found:
            return
        del found[watcher]
        if not found:
            del self._watchers[kind, path]
        self._paths[watcher].discard((kind, path))

    def forget(self, watcher: Watcher) -> None:
        """Take all watches of a connection that is gone."""
        for kind, path in list(self._paths.get(watcher, ())):
            self.remove(watcher, kind, path)
        self._paths.pop(watcher, None)

    def fire(self, event: Event) -> list[Watcher]:
        """The watchers to notify of an event; one-shot watches are removed."""
        watchers: dict[Watcher, None] = {}
        for kind in _ONE_SHOT[event.type]:
            for watcher in list(self._watchers.get((kind, event.path), ())):
                watchers[watcher] = None
                self.remove(watcher, kind, event.path)
        watchers.update(self._watchers.get((Kind.PERSISTENT, event.path), {}))
        if event.type is not EventType.CHILDREN_CHANGED:
            for path in _upwards(event.path):
                watchers.update(self._watchers.get((Kind.RECURSIVE, path), {}))
        return list(watchers)


def _upwards(path: str) -> Iterator[str]:
    yield path
    while path != "/":
        path = parent_of(path)
        yield path
