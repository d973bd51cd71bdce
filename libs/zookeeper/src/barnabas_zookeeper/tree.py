"""The znode tree: what ZooKeeper stores, changed by transactions, with no I/O and no clock.

A transaction is a list of operations that happen all or not at all. Each one gets the next
transaction id (zxid) and the time it is given, so that replaying the same transactions always
gives the same tree: their journal is a complete copy.

Rules kept here, all ZooKeeper's:

* A znode has bytes (or none at all), versions and children. `version` counts changes of its data,
  the visible `cversion` counts creations and deletions among its children.
* `czxid`, `mzxid` and `pzxid` are the transactions that created it, last changed its data, and
  last changed its set of children.
* A sequential znode gets ten digits behind its name: the number of children ever created under
  its parent. The number never goes back, whatever is deleted.
* An ephemeral znode belongs to a session and has no children; it goes when the session is closed.
* Sessions are opened and closed by transactions like any other, so that they outlive the process
  that grants them. The tree has them by id; whether one has expired it cannot know.
* Each znode has an ACL. The tree stores it and checks nothing (`access`).
* Watches are one-shot and belong to the connections of clients. The tree only reports, for each
  transaction, the events that would fire them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from barnabas_zookeeper.errors import (
    BadArgumentsError,
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    ZooKeeperError,
)

ANY_VERSION = -1
NO_SESSION = 0
ALL_PERMISSIONS = 31
# A signed 32-bit counter formatted as Java's %010d.
SEQUENCE_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Acl:
    """What an identity may do with a znode: permission bits, a scheme, and an id of that scheme."""

    permissions: int
    scheme: str
    id: str


OPEN = (Acl(ALL_PERMISSIONS, "world", "anyone"),)
"""Open to all clients: ZooKeeper's OPEN_ACL_UNSAFE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """A znode's Stat, as ZooKeeper has it; times in milliseconds since the epoch."""

    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int = 0
    ephemeral_owner: int
    data_length: int
    num_children: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create a znode; its parent must exist. With `sequential` digits are put behind the path."""

    path: str
    data: bytes | None = None
    sequential: bool = False
    ephemeral_owner: int = NO_SESSION
    acl: tuple[Acl, ...] = OPEN


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace the data of a znode that has the given version, or any."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode without children that has the given version, or any."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Refuse the transaction unless the znode exists with the given version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class SetAcl:
    """Replace the ACL of a znode; `version` counts such changes."""

    path: str
    acl: tuple[Acl, ...]
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Session:
    """A client's session: how long it lives unheard, and the secret that proves it."""

    timeout_ms: int
    password: bytes


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Begin a session of an id that none has, or give one another timeout."""

    id: int
    session: Session
    path: str = "/"


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End a session, and with it its ephemeral znodes; one that is unknown is no error."""

    id: int
    path: str = "/"


Operation = Create | SetData | Delete | Check | SetAcl | OpenSession | CloseSession


class EventType(Enum):
    """What happened to a znode, with the protocol's numbers."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened to a znode; the watchers of `path` for this type are notified."""

    type: EventType
    path: str


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction that was applied.

    `paths` holds, per operation, the path it acted on: for a sequential creation the one that
    the znode got.
    """

    zxid: int
    paths: tuple[str, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedNode:
    """One znode as a snapshot keeps it; `creations` is the counter behind sequential names."""

    path: str
    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    creations: int
    ephemeral_owner: int
    acl: tuple[Acl, ...] = OPEN
    aversion: int = 0


@dataclass(slots=True)
class _Node:
    data: bytes | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    ephemeral_owner: int
    version: int = 0
    creations: int = 0
    acl: tuple[Acl, ...] = OPEN
    aversion: int = 0
    children: set[str] = field(default_factory=set)


def validate_path(path: str) -> None:
    """Raise BadArgumentsError unless `path` is absolute, without empty, `.` or `..` parts."""
    if path == "/":
        return
    if not path.startswith("/"):
        raise BadArgumentsError(path, "a path starts with /")
    if "\0" in path:
        raise BadArgumentsError(path, "a path holds no null characters")
    for part in path[1:].split("/"):
        if part in ("", ".", ".."):
            raise BadArgumentsError(path, f"{part!r} cannot be part of a path")


def parent_of(path: str) -> str:
    """The path of the znode above; `path` must not be the root."""
    return path[: path.rindex("/")] or "/"


def name_of(path: str) -> str:
    """The last part of a path."""
    return path[path.rindex("/") + 1 :]


class Tree:
    """Znodes by path, changed only through `commit`.

    Invariants: every znode but the root has a parent; a parent's `children` are exactly the
    names below it; `zxid` is that of the last committed transaction.
    """

    def __init__(self) -> None:
        self.zxid = 0
        self._nodes: dict[str, _Node] = {"/": _Node(None, 0, 0, 0, 0, 0, NO_SESSION)}
        self._ephemerals: dict[int, set[str]] = {}
        self.open_sessions: dict[int, Session] = {}

    # --- reading

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat of a znode; raises NoNodeError."""
        node = self._node(path)
        return node.data, self._stat(node)

    def exists(self, path: str) -> Stat | None:
        """The stat of a znode, None if there is no such znode."""
        node = self._nodes.get(path)
        return None if node is None else self._stat(node)

    def children(self, path: str) -> list[str]:
        """The names of the children, sorted; raises NoNodeError."""
        return sorted(self._node(path).children)

    def acl(self, path: str) -> tuple[tuple[Acl, ...], Stat]:
        """The ACL of a znode, and its stat; raises NoNodeError."""
        node = self._node(path)
        return node.acl, self._stat(node)

    def count_below(self, path: str) -> int:
        """How many znodes are below a znode, at any depth; raises NoNodeError."""
        self._node(path)
        prefix = path if path == "/" else path + "/"
        return sum(each.startswith(prefix) and each != path for each in self._nodes)

    def ephemerals(self, session: int) -> list[str]:
        """The paths of the znodes that end with a session, sorted."""
        return sorted(self._ephemerals.get(session, ()))

    def sessions(self) -> list[int]:
        """The sessions that own ephemeral znodes, sorted."""
        return sorted(self._ephemerals)

    def __len__(self) -> int:
        return len(self._nodes)

    # --- writing

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations as one transaction, or none.

        Raises the ZooKeeperError of the first operation that is refused, its `index` set; the
        tree is then as it was before.
        """
        zxid = self.zxid + 1
        undo: list[Callable[[], None]] = []
        paths: list[str] = []
        events: list[Event] = []
        for index, operation in enumerate(operations):
            try:
                paths.append(self._apply(operation, zxid, now_ms, undo, events))
            except ZooKeeperError as error:
                error.index = index
                for step in reversed(undo):
                    step()
                raise
        self.zxid = zxid
        return Committed(zxid, tuple(paths), tuple(events))

    def _apply(
        self,
        operation: Operation,
        zxid: int,
        now_ms: int,
        undo: list[Callable[[], None]],
        events: list[Event],
    ) -> str:
        match operation:
            case Create():
                return self._create(operation, zxid, now_ms, undo, events)
            case SetData():
                self._set(operation, zxid, now_ms, undo)
                events.append(Event(EventType.DATA_CHANGED, operation.path))
            case Delete():
                self._delete(operation, zxid, undo)
                events.append(Event(EventType.DELETED, operation.path))
                events.append(Event(EventType.CHILDREN_CHANGED, parent_of(operation.path)))
            case Check():
                self._versioned(operation.path, operation.version)
            case SetAcl():
                self._set_acl(operation, undo)
            case OpenSession():
                self._open_session(operation, undo)
            case CloseSession():
                self._close_session(operation, zxid, undo, events)
        return operation.path

    def _create(
        self,
        operation: Create,
        zxid: int,
        now_ms: int,
        undo: list[Callable[[], None]],
        events: list[Event],
    ) -> str:
        path = operation.path
        # A sequential znode may be asked for as "/queue/": the digits are then its whole name.
        validate_path(path + "0" if operation.sequential else path)
        if path == "/":
            raise NodeExistsError(path)
        above = parent_of(path)
        parent = self._node(above)
        if parent.ephemeral_owner != NO_SESSION:
            raise NoChildrenForEphemeralsError(path)
        if operation.sequential:
            path = f"{path}{parent.creations:0{SEQUENCE_DIGITS}d}"
        if path in self._nodes:
            raise NodeExistsError(path)
        before = (parent.creations, parent.pzxid)

        def take_back() -> None:
            self._unlink(path, parent)
            parent.creations, parent.pzxid = before

        parent.creations += 1
        parent.pzxid = zxid
        owner = operation.ephemeral_owner
        node = _Node(operation.data, zxid, zxid, zxid, now_ms, now_ms, owner, acl=operation.acl)
        self._link(path, node, parent)
        undo.append(take_back)
        events.append(Event(EventType.CREATED, path))
        events.append(Event(EventType.CHILDREN_CHANGED, above))
        return path

    def _set(
        self, operation: SetData, zxid: int, now_ms: int, undo: list[Callable[[], None]]
    ) -> None:
        node = self._versioned(operation.path, operation.version)
        before = (node.data, node.version, node.mzxid, node.mtime_ms)

        def take_back() -> None:
            node.data, node.version, node.mzxid, node.mtime_ms = before

        undo.append(take_back)
        node.data = operation.data
        node.version += 1
        node.mzxid = zxid
        node.mtime_ms = now_ms

    def _delete(self, operation: Delete, zxid: int, undo: list[Callable[[], None]]) -> None:
        path = operation.path
        if path == "/":
            raise BadArgumentsError(path, "the root cannot be deleted")
        node = self._versioned(path, operation.version)
        if node.children:
            raise NotEmptyError(path)
        parent = self._node(parent_of(path))
        before = parent.pzxid

        def take_back() -> None:
            self._link(path, node, parent)
            parent.pzxid = before

        undo.append(take_back)
        self._unlink(path, parent)
        parent.pzxid = zxid

    def _set_acl(self, operation: SetAcl, undo: list[Callable[[], None]]) -> None:
        node = self._node(operation.path)
        if operation.version not in (ANY_VERSION, node.aversion):
            detail = f"aversion is {node.aversion}, not {operation.version}"
            raise BadVersionError(operation.path, detail)
        before = (node.acl, node.aversion)

        def take_back() -> None:
            node.acl, node.aversion = before

        undo.append(take_back)
        node.acl = operation.acl
        node.aversion += 1

    def _open_session(self, operation: OpenSession, undo: list[Callable[[], None]]) -> None:
        before = self.open_sessions.get(operation.id)

        def take_back() -> None:
            if before is None:
                del self.open_sessions[operation.id]
            else:
                self.open_sessions[operation.id] = before

        undo.append(take_back)
        self.open_sessions[operation.id] = operation.session

    def _close_session(
        self,
        operation: CloseSession,
        zxid: int,
        undo: list[Callable[[], None]],
        events: list[Event],
    ) -> None:
        for path in self.ephemerals(operation.id):
            self._delete(Delete(path), zxid, undo)
            events.append(Event(EventType.DELETED, path))
            events.append(Event(EventType.CHILDREN_CHANGED, parent_of(path)))
        before = self.open_sessions.pop(operation.id, None)

        def take_back() -> None:
            if before is not None:
                self.open_sessions[operation.id] = before

        undo.append(take_back)

    # --- snapshots

    def save(self) -> Iterator[SavedNode]:
        """Every znode, parents before children, in an order that depends only on the content."""
        for path in sorted(self._nodes):
            node = self._nodes[path]
            yield SavedNode(
                path=path,
                data=node.data,
                czxid=node.czxid,
                mzxid=node.mzxid,
                pzxid=node.pzxid,
                ctime_ms=node.ctime_ms,
                mtime_ms=node.mtime_ms,
                version=node.version,
                creations=node.creations,
                ephemeral_owner=node.ephemeral_owner,
                acl=node.acl,
                aversion=node.aversion,
            )

    @classmethod
    def restore(
        cls,
        saved: Iterable[SavedNode],
        *,
        zxid: int,
        open_sessions: Mapping[int, Session] | None = None,
    ) -> "Tree":
        """The tree that `save` described; raises NoNodeError where a parent is missing."""
        tree = cls()
        tree.zxid = zxid
        tree.open_sessions.update(open_sessions or {})
        for each in saved:
            node = _Node(
                each.data,
                each.czxid,
                each.mzxid,
                each.pzxid,
                each.ctime_ms,
                each.mtime_ms,
                each.ephemeral_owner,
                each.version,
                each.creations,
                each.acl,
                each.aversion,
            )
            if each.path == "/":
                tree._nodes["/"] = node
            else:
                tree._link(each.path, node, tree._node(parent_of(each.path)))
        return tree

    # --- pieces

    def _node(self, path: str) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            raise NoNodeError(path)
        return node

    def _versioned(self, path: str, version: int) -> _Node:
        node = self._node(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path, f"version is {node.version}, not {version}")
        return node

    def _link(self, path: str, node: _Node, parent: _Node) -> None:
        self._nodes[path] = node
        parent.children.add(name_of(path))
        if node.ephemeral_owner != NO_SESSION:
            self._ephemerals.setdefault(node.ephemeral_owner, set()).add(path)

    def _unlink(self, path: str, parent: _Node) -> None:
        node = self._nodes.pop(path)
        parent.children.remove(name_of(path))
        if node.ephemeral_owner != NO_SESSION:
            owned = self._ephemerals[node.ephemeral_owner]
            owned.remove(path)
            if not owned:
                del self._ephemerals[node.ephemeral_owner]

    @staticmethod
    def _stat(node: _Node) -> Stat:
        children = len(node.children)
        return Stat(
            czxid=node.czxid,
            mzxid=node.mzxid,
            pzxid=node.pzxid,
            ctime_ms=node.ctime_ms,
            mtime_ms=node.mtime_ms,
            version=node.version,
            # Creations plus deletions: of `creations` children, all but `children` are gone.
            cversion=2 * node.creations - children,
            aversion=node.aversion,
            ephemeral_owner=node.ephemeral_owner,
            data_length=len(node.data or b""),
            num_children=children,
        )
