"""What a ZooKeeper answers: sessions, requests in the order they come, watches. No I/O, no clock.

A shell hands in frames and performs what it finds afterwards: first `lines`, which must be on disk,
then `outbox`, in its order. Nothing of a frame may be sent before its lines are on
disk. Two clocks are given: `now_ms` is the wall clock, which znodes carry; `uptime_ms` never goes
back, and sessions expire by it.

As in ZooKeeper a session outlives its connections, and this process: after a restart each session
has its whole timeout to come back in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from barnabas_zookeeper import access, journal, wire
from barnabas_zookeeper.access import Identity, Permission
from barnabas_zookeeper.errors import (
    NoAuthError,
    NoNodeError,
    NoWatcherError,
    ZooKeeperError,
)
from barnabas_zookeeper.tree import (
    NO_SESSION,
    Check,
    CloseSession,
    Committed,
    Create,
    Delete,
    Event,
    EventType,
    OpenSession,
    Operation,
    Session,
    SetAcl,
    SetData,
    Tree,
    parent_of,
)
from barnabas_zookeeper.watches import Kind, Watches
from barnabas_zookeeper.wire import MalformedRequestError, Op, Reader

EPHEMERAL: Final = 1
SEQUENTIAL: Final = 2

UNIMPLEMENTED: Final = -6
AUTH_FAILED: Final = -115
RUNTIME_INCONSISTENCY: Final = -2

_WATCHED: Final = {
    1: (Kind.CHILDREN,),
    2: (Kind.DATA,),
    3: (Kind.CHILDREN, Kind.DATA, Kind.PERSISTENT, Kind.RECURSIVE),
}
_MODES: Final = (Kind.PERSISTENT, Kind.RECURSIVE)


class HangUpError(Exception):
    """The connection is to be closed once what is in the outbox has been sent."""


@dataclass(eq=False, slots=True)
class Client:
    """A connection. `session` is 0 until it has asked for one."""

    address: str
    session: int = NO_SESSION
    identities: list[Identity] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.identities = [Identity("world", "anyone"), Identity("ip", self.address)]


class Service:
    """The znodes, and all that clients can do with them."""

    def __init__(
        self, tree: Tree, *, tick_ms: int, first_session: int, new_password: Callable[[], bytes]
    ) -> None:
        """`first_session` is an id that no session has had; those after it are counted up."""
        self.tree = tree
        self.watches: Watches[Client] = Watches()
        self.lines: list[bytes] = []
        self.outbox: list[tuple[Client, bytes]] = []
        self._timeouts = (2 * tick_ms, 20 * tick_ms)
        self._next_session = max([first_session, *(id_ + 1 for id_ in tree.open_sessions)])
        self._new_password = new_password
        self._clients: dict[int, Client] = {}
        self._last_seen_ms: dict[int, int] = {}
        self._now_ms = 0
        self._handlers: dict[int, Callable[[Client, int, Reader], None]] = {
            Op.CREATE: partial(self._create, with_stat=False),
            Op.CREATE_2: partial(self._create, with_stat=True),
            Op.DELETE: self._delete,
            Op.EXISTS: self._exists,
            Op.GET_DATA: self._get_data,
            Op.SET_DATA: self._set_data,
            Op.GET_ACL: self._get_acl,
            Op.SET_ACL: self._set_acl,
            Op.GET_CHILDREN: partial(self._children, with_stat=False),
            Op.GET_CHILDREN_2: partial(self._children, with_stat=True),
            Op.SYNC: self._sync,
            Op.PING: self._ping,
            Op.MULTI: self._multi,
            Op.CHECK_WATCHES: partial(self._find_watches, remove=False),
            Op.REMOVE_WATCHES: partial(self._find_watches, remove=True),
            Op.AUTH: self._auth,
            Op.SASL: self._sasl,
            Op.SET_WATCHES: partial(self._set_watches, persistent=False),
            Op.SET_WATCHES_2: partial(self._set_watches, persistent=True),
            Op.GET_EPHEMERALS: self._ephemerals,
            Op.GET_ALL_CHILDREN_NUMBER: self._count_below,
            Op.ADD_WATCH: self._add_watch,
            Op.CLOSE: self._close,
        }

    # --- sessions

    def start(self, *, now_ms: int, uptime_ms: int) -> None:
        """Make the znodes that every ZooKeeper has, and restart each session's timeout."""
        self._now_ms = now_ms
        missing = [
            Create(path)
            for path in ("/zookeeper", "/zookeeper/config", "/zookeeper/quota")
            if self.tree.exists(path) is None
        ]
        if missing:
            self._commit(missing)
        self._last_seen_ms = dict.fromkeys(self.tree.open_sessions, uptime_ms)

    def connect(self, client: Client, frame: bytes, *, now_ms: int, uptime_ms: int) -> None:
        """Begin a session, or go on with one. Raises HangUpError, MalformedRequestError."""
        self._now_ms = now_ms
        asked = wire.Connect.read(frame)
        if asked.last_zxid > self.tree.zxid:
            raise HangUpError(f"it has seen transaction 0x{asked.last_zxid:x}; this is the past")
        least, most = self._timeouts
        timeout_ms = min(max(asked.timeout_ms, least), most)
        id_, session = asked.session, self.tree.open_sessions.get(asked.session)
        if asked.session == NO_SESSION:
            id_, session = self._next_session, Session(timeout_ms, self._new_password())
            self._next_session += 1
            self._commit([OpenSession(id_, session)])
        elif session is None or session.password != asked.password:
            self.outbox.append((client, wire.connected(NO_SESSION, 0, bytes(16))))
            raise HangUpError(f"session 0x{asked.session:x} has expired")
        elif session.timeout_ms != timeout_ms:
            session = Session(timeout_ms, session.password)
            self._commit([OpenSession(id_, session)])
        client.session = id_
        self._clients[id_] = client
        self._last_seen_ms[id_] = uptime_ms
        self.outbox.append((client, wire.connected(id_, timeout_ms, session.password)))

    @property
    def connection_count(self) -> int:
        """How many connections have a session."""
        return len(self._clients)

    def left(self, client: Client) -> None:
        """A connection is gone; its session waits for another."""
        self.watches.forget(client)
        if self._clients.get(client.session) is client:
            del self._clients[client.session]

    def expire(self, *, now_ms: int, uptime_ms: int) -> list[Client]:
        """End the sessions without a request in time; returns connections that go with them."""
        self._now_ms = now_ms
        gone: list[Client] = []
        for id_, session in list(self.tree.open_sessions.items()):
            if uptime_ms - self._last_seen_ms[id_] <= session.timeout_ms:
                continue
            self._commit([CloseSession(id_)])
            del self._last_seen_ms[id_]
            if id_ in self._clients:
                gone.append(self._clients.pop(id_))
        return gone

    # --- requests

    def handle(self, client: Client, frame: bytes, *, now_ms: int, uptime_ms: int) -> None:
        """Answer a request. Raises HangUpError, MalformedRequestError."""
        self._now_ms = now_ms
        reader = Reader(frame)
        xid, op = reader.read_int(), reader.read_int()
        if self._clients.get(client.session) is not client:
            raise HangUpError("its session has ended or moved to another connection")
        self._last_seen_ms[client.session] = uptime_ms
        handler = self._handlers.get(op)
        if handler is None:
            self._reply(client, xid, error=UNIMPLEMENTED)
            return
        try:
            handler(client, xid, reader)
        except ZooKeeperError as error:
            self._reply(client, xid, error=error.code)

    def _reply(self, client: Client, xid: int, body: bytes = b"", *, error: int = 0) -> None:
        self.outbox.append((client, wire.reply(xid, self.tree.zxid, error, body)))

    def _commit(self, operations: Sequence[Operation]) -> Committed:
        committed = self.tree.commit(operations, now_ms=self._now_ms)
        line = journal.encode_transaction(operations, zxid=committed.zxid, now_ms=self._now_ms)
        self.lines.append(line)
        for event in committed.events:
            for watcher in self.watches.fire(event):
                self._notify(watcher, event)
        return committed

    def _notify(self, client: Client, event: Event) -> None:
        self.outbox.append((client, wire.notification(event, self.tree.zxid)))

    def _require(self, client: Client, path: str, wanted: Permission) -> None:
        """Raise NoAuthError unless the client may; a missing znode has no ACL."""
        if self.tree.exists(path) is None:
            return
        acl, _ = self.tree.acl(path)
        if not access.allowed(acl, wanted, client.identities):
            raise NoAuthError(path)

    # --- reading

    def _exists(self, client: Client, xid: int, reader: Reader) -> None:
        path, watch = reader.read_string(), reader.read_bool()
        self._require(client, path, Permission.READ)
        if watch:
            self.watches.add(client, Kind.DATA, path)
        stat = self.tree.exists(path)
        if stat is None:
            raise NoNodeError(path)
        self._reply(client, xid, wire.stat(stat))

    def _get_data(self, client: Client, xid: int, reader: Reader) -> None:
        path, watch = reader.read_string(), reader.read_bool()
        self._require(client, path, Permission.READ)
        data, stat = self.tree.get(path)
        if watch:
            self.watches.add(client, Kind.DATA, path)
        self._reply(client, xid, wire.buffer(data) + wire.stat(stat))

    def _children(self, client: Client, xid: int, reader: Reader, *, with_stat: bool) -> None:
        path, watch = reader.read_string(), reader.read_bool()
        self._require(client, path, Permission.READ)
        names = self.tree.children(path)
        if watch:
            self.watches.add(client, Kind.CHILDREN, path)
        body = wire.strings(names)
        if with_stat:
            body += wire.stat(self.tree.get(path)[1])
        self._reply(client, xid, body)

    def _get_acl(self, client: Client, xid: int, reader: Reader) -> None:
        path = reader.read_string()
        self._require(client, path, Permission.READ | Permission.ADMIN)
        acl, stat = self.tree.acl(path)
        self._reply(client, xid, wire.acl(acl) + wire.stat(stat))

    def _ephemerals(self, client: Client, xid: int, reader: Reader) -> None:
        prefix = reader.read_string()
        paths = [each for each in self.tree.ephemerals(client.session) if each.startswith(prefix)]
        self._reply(client, xid, wire.strings(paths))

    def _count_below(self, client: Client, xid: int, reader: Reader) -> None:
        path = reader.read_string()
        self._require(client, path, Permission.READ)
        self._reply(client, xid, wire.number(self.tree.count_below(path)))

    def _sync(self, client: Client, xid: int, reader: Reader) -> None:
        # There is but one copy, and requests are served in their order.
        self._reply(client, xid, wire.string(reader.read_string()))

    def _ping(self, client: Client, xid: int, _reader: Reader) -> None:
        self._reply(client, xid)

    # --- writing

    def _create(self, client: Client, xid: int, reader: Reader, *, with_stat: bool) -> None:
        operation = self._read_create(client, reader)
        (path,) = self._commit([operation]).paths
        body = wire.string(path)
        if with_stat:
            body += wire.stat(self.tree.get(path)[1])
        self._reply(client, xid, body)

    def _delete(self, client: Client, xid: int, reader: Reader) -> None:
        self._commit([self._read_delete(client, reader)])
        self._reply(client, xid)

    def _set_data(self, client: Client, xid: int, reader: Reader) -> None:
        operation = self._read_set(client, reader)
        self._commit([operation])
        self._reply(client, xid, wire.stat(self.tree.get(operation.path)[1]))

    def _set_acl(self, client: Client, xid: int, reader: Reader) -> None:
        path, acl, version = (
            reader.read_string(),
            reader.read_list(reader.read_acl),
            reader.read_int(),
        )
        self._require(client, path, Permission.ADMIN)
        self._commit([SetAcl(path, access.resolve(path, acl, client.identities), version)])
        self._reply(client, xid, wire.stat(self.tree.get(path)[1]))

    def _read_create(self, client: Client, reader: Reader) -> Create:
        path, data = reader.read_string(), reader.read_buffer()
        asked, flags = reader.read_list(reader.read_acl), reader.read_int()
        if flags not in (0, EPHEMERAL, SEQUENTIAL, EPHEMERAL | SEQUENTIAL):
            raise MalformedRequestError(f"znodes of kind {flags} are not served")
        if path.startswith("/") and path != "/":
            self._require(client, parent_of(path), Permission.CREATE)
        return Create(
            path,
            data,
            sequential=bool(flags & SEQUENTIAL),
            ephemeral_owner=client.session if flags & EPHEMERAL else NO_SESSION,
            acl=access.resolve(path, asked, client.identities),
        )

    def _read_delete(self, client: Client, reader: Reader) -> Delete:
        path, version = reader.read_string(), reader.read_int()
        if path.startswith("/") and path != "/":
            self._require(client, parent_of(path), Permission.DELETE)
        return Delete(path, version)

    def _read_set(self, client: Client, reader: Reader) -> SetData:
        path, data, version = reader.read_string(), reader.read_buffer(), reader.read_int()
        self._require(client, path, Permission.WRITE)
        return SetData(path, data, version)

    def _read_check(self, client: Client, reader: Reader) -> Check:
        path, version = reader.read_string(), reader.read_int()
        self._require(client, path, Permission.READ)
        return Check(path, version)

    def _multi(self, client: Client, xid: int, reader: Reader) -> None:
        kinds: list[int] = []
        operations: list[Operation] = []
        refusal: ZooKeeperError | None = None
        readers: dict[int, Callable[[Client, Reader], Operation]] = {
            Op.CREATE: self._read_create,
            Op.CREATE_2: self._read_create,
            Op.DELETE: self._read_delete,
            Op.SET_DATA: self._read_set,
            Op.CHECK: self._read_check,
        }
        while True:
            kind, done, _ = reader.read_int(), reader.read_bool(), reader.read_int()
            if done:
                break
            if kind not in readers:
                raise MalformedRequestError(f"operation {kind} cannot be part of a transaction")
            kinds.append(kind)
            try:
                operations.append(readers[kind](client, reader))
            except ZooKeeperError as error:
                if refusal is None:
                    refusal, error.index = error, len(kinds) - 1
        try:
            if refusal is not None:
                raise refusal
            committed = self._commit(operations)
        except ZooKeeperError as error:
            self._reply(client, xid, _rolled_back(len(kinds), error))
            return
        body = b"".join(
            wire.result(kind, self._outcome(kind, path))
            for kind, path in zip(kinds, committed.paths, strict=True)
        )
        self._reply(client, xid, body + wire.END_OF_RESULTS)

    def _outcome(self, kind: int, path: str) -> bytes:
        if kind in (Op.DELETE, Op.CHECK):
            return b""
        # What a later operation of the same transaction deleted has no stat any more.
        stat = self.tree.exists(path)
        encoded = wire.stat(stat) if stat is not None else bytes(68)
        if kind == Op.SET_DATA:
            return encoded
        return wire.string(path) + (encoded if kind == Op.CREATE_2 else b"")

    # --- watching

    def _add_watch(self, client: Client, xid: int, reader: Reader) -> None:
        path, mode = reader.read_string(), reader.read_int()
        if not 0 <= mode < len(_MODES):
            raise MalformedRequestError(f"there is no way {mode} to watch")
        self.watches.add(client, _MODES[mode], path)
        self._reply(client, xid, wire.number(0))

    def _find_watches(self, client: Client, xid: int, reader: Reader, *, remove: bool) -> None:
        path, kinds = reader.read_string(), _WATCHED.get(reader.read_int(), ())
        found = [kind for kind in kinds if self.watches.has(client, kind, path)]
        if not found:
            raise NoWatcherError(path)
        if remove:
            for kind in found:
                self.watches.remove(client, kind, path)
        self._reply(client, xid)

    def _set_watches(self, client: Client, xid: int, reader: Reader, *, persistent: bool) -> None:
        """What a client watched on its last connection; it gets the events that it missed."""
        since = reader.read_long()
        watched = [reader.read_list(reader.read_string) for _ in range(3 + 2 * persistent)]
        data, existence, children, *staying = watched
        for path in data:
            self._watch_again(client, Kind.DATA, path, since)
        for path in children:
            self._watch_again(client, Kind.CHILDREN, path, since)
        for path in existence:
            if self.tree.exists(path) is not None:
                self._notify(client, Event(EventType.CREATED, path))
            else:
                self.watches.add(client, Kind.DATA, path)
        for kind, paths in zip(_MODES, staying, strict=False):
            for path in paths:
                self.watches.add(client, kind, path)
        self._reply(client, xid)

    def _watch_again(self, client: Client, kind: Kind, path: str, since: int) -> None:
        """Watch a znode that there was, or send what happened to it after transaction `since`."""
        stat = self.tree.exists(path)
        if stat is None:
            self._notify(client, Event(EventType.DELETED, path))
        elif kind is Kind.DATA and stat.mzxid > since:
            self._notify(client, Event(EventType.DATA_CHANGED, path))
        elif kind is Kind.CHILDREN and stat.pzxid > since:
            self._notify(client, Event(EventType.CHILDREN_CHANGED, path))
        else:
            self.watches.add(client, kind, path)

    # --- sessions

    def _auth(self, client: Client, xid: int, reader: Reader) -> None:
        reader.read_int()  # A type that has always been 0.
        scheme, given = reader.read_string(), reader.read_buffer() or b""
        try:
            if scheme != "digest":
                raise ValueError(f"there is no scheme {scheme}")
            identity = access.digest_of(given)
        except ValueError as error:
            self._reply(client, xid, error=AUTH_FAILED)
            raise HangUpError(str(error)) from error
        if identity not in client.identities:
            client.identities.append(identity)
        self._reply(client, xid)

    def _sasl(self, client: Client, xid: int, _reader: Reader) -> None:
        """There is no SASL; a member of Apache's that is not set up for it says so by no token."""
        self._reply(client, xid, wire.buffer(None))

    def _close(self, client: Client, xid: int, _reader: Reader) -> None:
        self._commit([CloseSession(client.session)])
        del self._last_seen_ms[client.session]
        del self._clients[client.session]
        self._reply(client, xid)
        raise HangUpError("it closed its session")


def _rolled_back(count: int, error: ZooKeeperError) -> bytes:
    """Nothing happened: which operation was refused and why; those after it were not tried."""
    codes = [0] * error.index + [error.code]
    codes += [RUNTIME_INCONSISTENCY] * (count - len(codes))
    body = b"".join(wire.result(-1, wire.number(code)) for code in codes)
    return body + wire.END_OF_RESULTS
