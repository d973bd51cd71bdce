"""A CoordinationStore on a real ZooKeeper ensemble: the only module that knows kazoo.

Every call blocks its thread, for a bounded time: while the connection is away it waits for it to
come back until it has been away for a session timeout, and from then on fails at once, until
there is a connection again. A write whose answer is lost fails as CoordinationError, because
nobody can tell whether it happened; whoever keeps a copy of the znodes must read them anew.

What is heard of changes by others goes to the one subscriber, from a thread of kazoo's: the path
of a znode that was watched, or None after a connection or session came back, when anything may
have changed and no watch is left.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.hosts import collect_hosts
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE

from barnabas_broker.zk.store import (
    Check,
    Committed,
    CoordinationError,
    Create,
    Delete,
    Operation,
    SetData,
    Stat,
    Subscriber,
    Watch,
)
from barnabas_zookeeper import errors
from barnabas_zookeeper.errors import ZooKeeperError

log = logging.getLogger(__name__)
# kazoo tells each step of a connection at INFO; the steps that matter are told here.
_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.setLevel(logging.ERROR)

TRANSACTION_BYTES_MAX: Final = 512 * 1024
"""Half of ZooKeeper's own limit for one request (`jute.maxbuffer`), beyond which it hangs up."""

RECONNECT_DELAY_MAX_S: Final = 1.0
"""The longest pause between two attempts to connect: a broker should notice soon after the
ensemble is back, and one attempt a second burdens nobody."""

EXPIRY_SLACK_S: Final = 6.0
"""How much later than its timeout a session may end: ZooKeeper expires sessions once a tick, and
the timeout that it granted may be a little longer than the one asked for."""

GONE_POLL_S: Final = 0.1

EPHEMERAL: Final = 1
SEQUENTIAL: Final = 2

_REFUSALS: Final[dict[type[KazooException], type[ZooKeeperError]]] = {
    BadArgumentsError: errors.BadArgumentsError,
    BadVersionError: errors.BadVersionError,
    NoChildrenForEphemeralsError: errors.NoChildrenForEphemeralsError,
    NodeExistsError: errors.NodeExistsError,
    NoNodeError: errors.NoNodeError,
    NotEmptyError: errors.NotEmptyError,
}


class SessionStore:
    """Znodes of an ensemble, below a chroot, seen through one session. First `open`, last `close`.

    `connect` is `host:port,host:port/chroot`; raises CoordinationError where it is anything else.
    """

    transaction_bytes_max = TRANSACTION_BYTES_MAX

    def __init__(self, connect: str, *, session_timeout_ms: int, max_in_flight: int = 10) -> None:
        try:
            hosts, chroot = collect_hosts(connect)
        except ValueError as error:
            raise CoordinationError(f"zookeeper.connect={connect}: {error}") from error
        self.connect = connect
        self._chroot = (chroot or "").rstrip("/")
        self._timeout_s = session_timeout_ms / 1000
        self._max_in_flight = max_in_flight
        self._subscriber: Subscriber | None = None
        self._armed: set[tuple[str, Watch]] = set()
        self._lock = threading.Lock()  # Over `_armed` and `_closing`, for several threads.
        self._connected = threading.Event()
        self._away_since: float | None = None
        self._closing = False
        retry = KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_DELAY_MAX_S)
        self._client: Any = KazooClient(
            hosts=",".join(
                f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts
            ),
            timeout=self._timeout_s,
            connection_retry=retry,
            logger=_kazoo_log,
        )
        self._client.add_listener(self._on_state)

    def open(self, *, connection_timeout_ms: int) -> None:
        """Connect, and make the chroot if it does not exist.

        Raises CoordinationError, in one line, where nobody answers in that time; `close` then, too.
        """
        with self._lock:  # Not between the two steps of a `close`, which would leave it running.
            if self._closing:
                raise CoordinationError("the session with ZooKeeper is closed")
            self._client.start_async()
        if not self._connected.wait(connection_timeout_ms / 1000) or self._closing:
            raise CoordinationError(
                f"no ZooKeeper answers at {self.connect} within {connection_timeout_ms} ms "
                "(zookeeper.connect, zookeeper.connection.timeout.ms)"
            )
        if self._chroot:
            self._ask("/", self._client.ensure_path_async(self._chroot))

    @property
    def session(self) -> int:
        """The id of the session; raises CoordinationError while there is none."""
        return self.credentials[0]

    @property
    def credentials(self) -> tuple[int, bytes]:
        """Id and password of the session, with which another process can take it over or end it.

        Raises CoordinationError while there is none.
        """
        known: tuple[int, bytes] | None = self._client.client_id
        if known is None:
            raise CoordinationError(f"there is no session with ZooKeeper at {self.connect}")
        return known

    # --- reading

    def get(self, path: str) -> tuple[bytes | None, Stat]:
        """Data and stat of a znode. Raises NoNodeError, CoordinationError."""
        self._await_connection()
        data, stat = self._ask(path, self._client.get_async(self._full(path)))
        return data, _stat(stat)

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes | None, Stat] | None]:
        """Data and stat of each znode, None for those that do not exist; several at a time."""
        self._await_connection()
        found: list[tuple[bytes | None, Stat] | None] = []
        waiting = iter(paths)
        in_flight: deque[tuple[str, Any]] = deque()

        def send(count: int) -> None:
            for path in islice(waiting, count):
                in_flight.append((path, self._client.get_async(self._full(path))))

        send(self._max_in_flight)
        while in_flight:
            try:
                data, stat = self._ask(*in_flight.popleft())
            except errors.NoNodeError:
                found.append(None)
            else:
                found.append((data, _stat(stat)))
            send(1)
        return found

    def exists(self, path: str) -> Stat | None:
        """The stat of a znode, None if there is none. Raises CoordinationError."""
        self._await_connection()
        stat = self._ask(path, self._client.exists_async(self._full(path)))
        return None if stat is None else _stat(stat)

    def children(self, path: str) -> list[str]:
        """Names of the children, sorted. Raises NoNodeError, CoordinationError."""
        self._await_connection()
        names: list[str] = self._ask(path, self._client.get_children_async(self._full(path)))
        return sorted(names)

    # --- writing

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations or none; ZooKeeper has the time of its own, `now_ms` is not sent.

        Raises the ZooKeeperError of the operation that was refused, or CoordinationError where
        nobody can tell what happened.
        """
        self._await_connection()
        session = self.session
        for operation in operations:
            if isinstance(operation, Create) and operation.ephemeral_owner not in (0, session):
                raise CoordinationError(
                    f"the session 0x{operation.ephemeral_owner:x} has ended; "
                    f"{operation.path} cannot be made for it"
                )
        transaction = self._client.transaction()
        # Not by its methods, which refuse znodes without data; Kafka tells no data from empty.
        transaction.operations += [self._encoded(operation) for operation in operations]
        results = self._ask("/", transaction.commit_async())
        for index, result in enumerate(results):
            if isinstance(result, RolledBackError | RuntimeInconsistency):
                continue
            if isinstance(result, KazooException):
                refusal = _refusal(operations[index].path, result)
                if isinstance(refusal, ZooKeeperError):
                    refusal.index = index
                raise refusal
        paths = tuple(
            self._relative(result) if isinstance(result, str) else operation.path
            for operation, result in zip(operations, results, strict=True)
        )
        return Committed(self._client.last_zxid, paths, ())

    # --- hearing

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have `subscriber` told of changes, from another thread; it must not block."""
        self._subscriber = subscriber

    def watch(self, path: str, kind: Watch) -> None:
        """Have the next change of a znode, or of its children, told to the subscriber.

        A znode that is watched already is not asked for again. Watching the children of a znode
        that does not exist waits for nothing. Raises CoordinationError.
        """
        armed = (path, kind)
        with self._lock:
            if armed in self._armed:
                return
            self._armed.add(armed)
        heard = partial(self._heard, armed)
        try:
            self._await_connection()
            if kind is Watch.DATA:
                self._ask(path, self._client.exists_async(self._full(path), watch=heard))
            else:
                self._ask(path, self._client.get_children_async(self._full(path), watch=heard))
        except (errors.NoNodeError, CoordinationError) as error:
            self._disarm(armed)
            if isinstance(error, CoordinationError):
                raise

    def wait_until_gone(self, path: str) -> bool:
        """Wait, for as long as a session that ended silently may last; False if it is there yet."""
        deadline = time.monotonic() + self._timeout_s + EXPIRY_SLACK_S
        if self.exists(path) is None:
            return True
        log.info("waiting for %s of an earlier session to go", path)
        while self.exists(path) is not None:
            if time.monotonic() > deadline or self._closing:
                return False
            time.sleep(GONE_POLL_S)
        return True

    def close(self) -> None:
        """End the session: its ephemeral znodes go with it, at once where ZooKeeper is there.

        Safe in any thread and at any time: calls that wait in another thread fail.
        """
        with self._lock:
            self._closing = True
        self._connected.set()
        self._client.stop()
        self._client.close()

    # --- the machinery

    def _heard(self, armed: tuple[str, Watch], event: WatchedEvent) -> None:
        self._disarm(armed)
        # Watches end with their connection; the state listener tells when there is a new one.
        if event.type != EventType.NONE and self._subscriber is not None:
            self._subscriber(armed[0])

    def _disarm(self, armed: tuple[str, Watch]) -> None:
        with self._lock:
            self._armed.discard(armed)

    def _on_state(self, state: str) -> None:
        """In kazoo's connection thread: note whether there is a connection, and tell."""
        if state == KazooState.CONNECTED:
            again, self._away_since = self._away_since is not None, None
            self._connected.set()
            if again:
                log.info("connected to ZooKeeper at %s again", self.connect)
                with self._lock:
                    self._armed.clear()
                if self._subscriber is not None:
                    self._subscriber(None)
            return
        self._connected.clear()
        if self._away_since is None:
            self._away_since = time.monotonic()
        if self._closing:
            return
        if state == KazooState.LOST:
            log.warning("the session with ZooKeeper at %s has expired", self.connect)
        else:
            log.warning("the connection to ZooKeeper at %s is lost", self.connect)

    def _await_connection(self) -> None:
        """Wait until there is a connection, or none for longer than a session lasts."""
        since = self._away_since
        if since is not None and not self._connected.wait(
            max(0.0, since + self._timeout_s - time.monotonic())
        ):
            raise CoordinationError(f"ZooKeeper at {self.connect} cannot be reached")
        if self._closing:
            raise CoordinationError("the session with ZooKeeper is closed")

    def _ask(self, path: str, answer: Any) -> Any:
        """The result of a request that was sent; raises ZooKeeperError or CoordinationError."""
        try:
            return answer.get(timeout=self._timeout_s)
        except KazooTimeoutError as error:
            raise CoordinationError(
                f"ZooKeeper at {self.connect} did not answer within {self._timeout_s:g} s"
            ) from error
        except KazooException as error:
            raise _refusal(path, error, self.connect) from error

    def _full(self, path: str) -> str:
        if not self._chroot:
            return path
        return self._chroot if path == "/" else self._chroot + path

    def _relative(self, path: str) -> str:
        return path[len(self._chroot) :] or "/"

    def _encoded(self, operation: Operation) -> Any:
        path = self._full(operation.path)
        match operation:
            case Create(_, data, sequential, owner):
                flags = (EPHEMERAL if owner else 0) | (SEQUENTIAL if sequential else 0)
                return wire.Create(path, data, OPEN_ACL_UNSAFE, flags)
            case SetData(_, data, version):
                return wire.SetData(path, data, version)
            case Delete(_, version):
                return wire.Delete(path, version)
            case Check(_, version):
                return wire.CheckVersion(path, version)


def _refusal(path: str, error: KazooException, connect: str = "") -> Exception:
    """What a failure means here: a typed refusal, or that nobody can tell."""
    refusal = _REFUSALS.get(type(error))
    if refusal is not None:
        return refusal(path)
    at = f" at {connect}" if connect else ""
    if isinstance(error, SessionExpiredError) and not isinstance(error, ConnectionClosedError):
        return CoordinationError(f"the session with ZooKeeper{at} has expired")
    if isinstance(error, ConnectionLoss | ConnectionClosedError):
        return CoordinationError(f"the connection to ZooKeeper{at} was lost")
    return CoordinationError(
        f"ZooKeeper{at} refuses {path}: {type(error).__name__} {error}".strip()
    )


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        pzxid=stat.pzxid,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
        version=stat.version,
        cversion=stat.cversion,
        ephemeral_owner=stat.ephemeralOwner,
        data_length=stat.dataLength,
        num_children=stat.numChildren,
    )
