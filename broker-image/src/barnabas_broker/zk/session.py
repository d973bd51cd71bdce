"""A CoordinationStore on a real ZooKeeper ensemble: all that a broker knows of kazoo.

Every call blocks its thread, for a bounded time: while the connection is away it waits for it to
come back until it has been away for a session timeout, and from then on fails at once, until
there is a connection again. A write whose answer is lost fails as CoordinationError, because
its outcome is unknown; a caller with a copy of the znodes must read them again.

Changes by others go to the one subscriber, from a thread of kazoo's: the path
of a znode that was watched, or None after a connection or session came back, when anything may
have changed and no watch is left.
"""

import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
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
from kazoo.protocol.states import EventType, KeeperState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from barnabas_broker.zk.acls import Protection, protection
from barnabas_broker.zk.credentials import NO_CREDENTIALS, Credentials
from barnabas_broker.zk.ensemble_handler import EnsembleHandler
from barnabas_broker.zk.sasl_login import sasl_options
from barnabas_broker.zk.session_counts import SessionCounts
from barnabas_broker.zk.store import (
    Check,
    Committed,
    CoordinationError,
    Create,
    Delete,
    Heir,
    Operation,
    SetData,
    Stat,
    Subscriber,
    Watch,
)
from barnabas_broker.zk.tls_handler import TlsHandler
from barnabas_zookeeper import errors
from barnabas_zookeeper.errors import ZooKeeperError

log = logging.getLogger(__name__)
# kazoo logs each step of a connection at INFO; the steps that matter are logged here.
_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.setLevel(logging.ERROR)

TRANSACTION_BYTES_MAX: Final = 512 * 1024
"""Half of ZooKeeper's own limit for one request (`jute.maxbuffer`), beyond which it hangs up."""

RECONNECT_DELAY_MAX_S: Final = 1.0
"""The longest pause between two attempts to connect: a broker should notice soon after the
ensemble is back, and one attempt a second is no load."""

EXPIRY_SLACK_S: Final = 6.0
"""How much later than its timeout a session may end: ZooKeeper expires sessions once a tick, and
the timeout that it granted may be a little longer than the one asked for."""

GONE_POLL_S: Final = 0.1

CLOSE_TIMEOUT_S: Final = 5.0
"""How long the end of a session may take; Kafka's client waits as long (ZooKeeperClient.close)."""

HUNG_POLL_S: Final = 0.1

REFUSED_PAUSE_S: Final = 1.0
"""How long a session that was refused is left alone; Kafka's `RetryBackoffMs`."""

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

_ACLS: Final[dict[Protection, list[ACL]]] = {
    Protection.NONE: OPEN_ACL_UNSAFE,
    Protection.READABLE: [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE],
    Protection.PRIVATE: CREATOR_ALL_ACL,
}


class SessionStore:
    """Znodes of an ensemble, below a chroot, seen through one session. First `open`, last `close`.

    `connect` is `host:port,host:port/chroot`; raises CoordinationError where it is anything else.
    An `heir` gets each session before it can own a znode. While the process is
    `hung`, as any thread can ask, nothing is said to the ensemble: the session ends like that of a
    process that died.
    """

    transaction_bytes_max = TRANSACTION_BYTES_MAX

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        max_in_flight: int = 10,
        heir: Heir | None = None,
        credentials: Credentials = NO_CREDENTIALS,
        hung: Callable[[], bool] = bool,
    ) -> None:
        try:
            hosts, chroot = collect_hosts(connect)
        except ValueError as error:
            raise CoordinationError(f"zookeeper.connect={connect}: {error}") from error
        self.connect = connect
        self.counts = SessionCounts()
        self._chroot = (chroot or "").rstrip("/")
        self._timeout_s = session_timeout_ms / 1000
        self._max_in_flight = max_in_flight
        self._heir = heir
        if heir is not None and credentials.material is not None:
            heir.secure(credentials.material.encode())
        self._subscriber: Subscriber | None = None
        self._armed: set[tuple[str, Watch]] = set()
        self._lock = threading.Lock()  # Over `_armed`, for several threads.
        self._life = threading.Lock()  # Over starts of the client and `_closing`.
        self._connected = threading.Event()
        self._away_since: float | None = None
        self._closing = threading.Event()
        self._known = credentials
        self._welcome = False  # Once the ensemble has accepted the credentials.
        self._refused = False  # While it does not; kazoo soon says only that all is closed.
        tls = credentials.tls
        self._tls = None if tls is None else TlsHandler(tls, self._renewed_tls)
        self._hung = hung
        handler = self._tls or EnsembleHandler()
        handler.before_each = self._wait_while_hung
        retry = KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=RECONNECT_DELAY_MAX_S)
        self._hosts = ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts
        )
        self._client: Any = KazooClient(
            hosts=self._hosts,
            timeout=self._timeout_s,
            connection_retry=retry,
            logger=_kazoo_log,
            handler=handler,
            use_ssl=self._tls is not None,
            sasl_options=sasl_options(credentials.login),
            auth_data=None if credentials.digest is None else [("digest", credentials.digest)],
        )
        self._client.add_listener(self._on_state)

    def open(self, *, connection_timeout_ms: int, make_chroot: bool = True) -> None:
        """Connect, and make the chroot if it does not exist.

        Raises CoordinationError, in one line, where the ensemble is unreachable in that time, or
        the credentials are refused; `close` then, too.
        """
        with self._life:  # Not between the two steps of a `close`, which would leave it running.
            if self._closing.is_set():
                raise CoordinationError("the session with ZooKeeper is closed")
            self._client.start_async()
        if not self._connected.wait(connection_timeout_ms / 1000) or self._closing.is_set():
            why = f": {self._tls.trouble}" if self._tls is not None and self._tls.trouble else ""
            raise CoordinationError(
                f"no ZooKeeper answers at {self.connect} within {connection_timeout_ms} ms{why} "
                "(zookeeper.connect, zookeeper.connection.timeout.ms)"
            )
        # kazoo reports the connection first, and authenticates then; it answers after.
        self._ask("/", self._client.exists_async("/"))
        self._welcome = True
        if self._chroot and make_chroot:
            acl = self._acl(self._chroot)
            self._ask("/", self._client.ensure_path_async(self._chroot, acl=acl))

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
        answers = self._each(paths, lambda path: self._client.get_async(self._full(path)))
        return [None if found is None else (found[0], _stat(found[1])) for found in answers]

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

    def children_many(self, paths: Sequence[str]) -> list[list[str] | None]:
        """Names of the children of each znode, None where there is none; several at a time."""
        answers = self._each(paths, lambda path: self._client.get_children_async(self._full(path)))
        return [None if names is None else sorted(names) for names in answers]

    # --- writing

    def commit(self, operations: Sequence[Operation], *, now_ms: int) -> Committed:
        """Apply all operations or none; ZooKeeper has the time of its own, `now_ms` is not sent.

        Raises the ZooKeeperError of the operation that was refused, or CoordinationError where
        the outcome is unknown.
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
        # Not by its methods, which refuse znodes without data; for Kafka no data and empty are the
        # same.
        transaction.operations += [self._encoded(operation) for operation in operations]
        results = self._ask("/", transaction.commit_async())
        for index, result in enumerate(results):
            if isinstance(result, RolledBackError | RuntimeInconsistency):
                continue
            if isinstance(result, KazooException):
                refusal = self._refusal(operations[index].path, result)
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
        """Have `subscriber` called for changes, from another thread; it must not block."""
        self._subscriber = subscriber

    def watch(self, path: str, kind: Watch) -> None:
        """Have the subscriber called for the next change of a znode, or of its children.

        A znode that is watched already is not asked for again. Watching the children of a znode
        that does not exist waits for nothing. Raises CoordinationError.
        """
        self.watch_many([path], kind)

    def watch_many(self, paths: Sequence[str], kind: Watch) -> None:
        """`watch` each of these znodes; several at a time."""
        with self._lock:
            new = [path for path in paths if (path, kind) not in self._armed]
            self._armed.update((path, kind) for path in new)
        try:
            for path, found in zip(new, self._each(new, partial(self._arm, kind)), strict=True):
                if found is None and kind is Watch.CHILDREN:
                    self._disarm((path, kind))
        except CoordinationError:
            for path in new:
                self._disarm((path, kind))
            raise

    def _arm(self, kind: Watch, path: str) -> Any:
        ask = self._client.exists_async if kind is Watch.DATA else self._client.get_children_async
        return ask(self._full(path), watch=partial(self._on_watch_event, (path, kind)))

    def wait_until_gone(self, path: str) -> bool:
        """Wait, for as long as a session that ended silently may last; False if it is there yet."""
        deadline = time.monotonic() + self._timeout_s + EXPIRY_SLACK_S
        if self.exists(path) is None:
            return True
        log.info("Waiting for an ephemeral znode of an earlier session to be deleted: %s", path)
        while self.exists(path) is not None:
            if time.monotonic() > deadline or self._closing.is_set():
                return False
            time.sleep(GONE_POLL_S)
        return True

    def close(self) -> None:
        """End the session: its ephemeral znodes go with it, at once where ZooKeeper is there.

        Safe in any thread and at any time: calls that wait in another thread fail.
        """
        with self._life:
            self._closing.set()
        self.counts.closed()
        in_order = bool(self._client.connected)
        self._connected.set()
        # kazoo waits for its connection thread, which may be in a name look-up that does not end.
        closing = threading.Thread(target=self._close_client, name="zookeeper-close", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT_S)
        if closing.is_alive():
            log.warning(
                "ZooKeeper session not closed: %s did not answer within %.0f s; it expires "
                    "after zookeeper.session.timeout.ms", self.connect, CLOSE_TIMEOUT_S,
            )  # fmt: skip
        elif in_order and self._heir is not None:
            self._heir.forget()

    def _close_client(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:  # kazoo's, of no class of its own, when that thread hangs.
            log.debug("closing the session with ZooKeeper at %s: %s", self.connect, error)

    # --- the machinery

    def _on_watch_event(self, armed: tuple[str, Watch], event: WatchedEvent) -> None:
        self._disarm(armed)
        # Watches end with their connection; the state listener runs when there is a new one.
        if event.type != EventType.NONE and self._subscriber is not None:
            self._subscriber(armed[0])

    def _wait_while_hung(self) -> None:
        """In kazoo's connection thread, which sends the heartbeats."""
        # What was halted as a whole goes on within the first pause, and is no news.
        if not self._hung() or self._closing.wait(HUNG_POLL_S) or not self._hung():
            return
        log.error(
            "Event loop blocked, heartbeats to ZooKeeper stop: %s expires the session if that"
            " takes too long",
            self.connect,
        )
        while self._hung() and not self._closing.wait(HUNG_POLL_S):
            pass

    def _renewed_tls(self) -> ssl.SSLContext | None:
        """In kazoo's connection thread, before it connects: TLS by files that have changed."""
        found = None if self._known.renewed is None else self._known.renewed()
        if found is None:
            return None
        context, material = found
        if self._heir is not None:
            self._heir.secure(material.encode())
        return context

    def _disarm(self, armed: tuple[str, Watch]) -> None:
        with self._lock:
            self._armed.discard(armed)

    def _on_state(self, state: str) -> None:
        """In kazoo's connection thread: note whether there is a connection, and notify."""
        if state == KazooState.CONNECTED:
            if self._heir is not None:
                session, password = self.credentials
                self._heir.hand_over(session, password, int(self._timeout_s * 1000), self._hosts)
            self._refused = False
            again, self._away_since = self._away_since is not None, None
            self.counts.connected()
            self._connected.set()
            if again:
                log.info("Reconnected to ZooKeeper: %s", self.connect)
                with self._lock:
                    self._armed.clear()
                if self._subscriber is not None:
                    self._subscriber(None)
        else:
            self._on_loss(state)

    def _on_loss(self, state: str) -> None:
        self._refused = self._client.client_state == KeeperState.AUTH_FAILED
        given_up = self._refused or self._client.client_state == KeeperState.CLOSED
        if given_up and not self._welcome:
            self._connected.set()  # `open` need not wait any longer; it reads the reason.
            return
        self._connected.clear()
        if self._away_since is None:
            self._away_since = time.monotonic()
        if self._closing.is_set():
            return
        if given_up:  # kazoo has; we do not.
            threading.Thread(target=self._try_again, name="zookeeper-again", daemon=True).start()
        if self._refused:
            self.counts.refused()
            log.error(
                "ZooKeeper authentication failed: %s rejects %s", self.connect, self._known.login
            )
        elif state == KazooState.LOST:
            self.counts.expired()
            log.warning("ZooKeeper session expired: %s", self.connect)
        else:
            self.counts.disconnected()
            log.warning("ZooKeeper connection lost: %s", self.connect)

    def _try_again(self) -> None:
        """Begin again after a refusal, which may be that of one member, or of a moment.

        As Kafka's `ZooKeeperClient` does (`scheduleReinitialize`).
        """
        if self._closing.wait(REFUSED_PAUSE_S):
            return
        with self._life:
            if not self._closing.is_set():
                self._client.start_async()

    def _await_connection(self) -> None:
        """Wait until there is a connection, or none for longer than a session lasts."""
        since = self._away_since
        if since is not None and not self._connected.wait(
            max(0.0, since + self._timeout_s - time.monotonic())
        ):
            raise CoordinationError(f"ZooKeeper at {self.connect} cannot be reached")
        if self._closing.is_set():
            raise CoordinationError("the session with ZooKeeper is closed")

    def _ask(self, path: str, answer: Any) -> Any:
        """The result of a request that was sent; raises ZooKeeperError or CoordinationError."""
        began_ns = time.perf_counter_ns()
        try:
            return answer.get(timeout=self._timeout_s)
        except KazooTimeoutError as error:
            raise CoordinationError(
                f"ZooKeeper at {self.connect} did not answer within {self._timeout_s:g} s"
            ) from error
        except KazooException as error:
            raise self._refusal(path, error) from error
        finally:
            self.counts.took((time.perf_counter_ns() - began_ns) // 1000)

    def _each(self, paths: Sequence[str], send: Callable[[str], Any]) -> Iterator[Any]:
        """What is answered about each path, in order, None where there is no such znode.

        `send` sends a request, of which as many are under way at a time as there may be. Raises
        CoordinationError.
        """
        self._await_connection()
        waiting = iter(paths)
        under_way = deque((path, send(path)) for path in islice(waiting, self._max_in_flight))
        while under_way:
            try:
                answer = self._ask(*under_way.popleft())
            except errors.NoNodeError:
                answer = None
            under_way.extend((path, send(path)) for path in islice(waiting, 1))
            yield answer

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
                return wire.Create(path, data, self._acl(operation.path), flags)
            case SetData(_, data, version):
                return wire.SetData(path, data, version)
            case Delete(_, version):
                return wire.Delete(path, version)
            case Check(_, version):
                return wire.CheckVersion(path, version)

    def _acl(self, path: str) -> list[ACL]:
        return _ACLS[protection(path)] if self._known.set_acl else OPEN_ACL_UNSAFE

    def _refusal(self, path: str, error: KazooException) -> Exception:
        """What a failure means here: a typed refusal, or an unknown outcome."""
        refusal = _REFUSALS.get(type(error))
        if refusal is not None:
            return refusal(path)
        ensemble = f"ZooKeeper at {self.connect}"
        match error:
            case ConnectionClosedError() if self._refused:
                return self._refusal(path, AuthFailedError())
            case ConnectionLoss() | ConnectionClosedError():
                reason = f"the connection to {ensemble} was lost"
            case SessionExpiredError():
                reason = f"the session with {ensemble} has expired"
            case AuthFailedError():
                reason = f"{ensemble} refuses {self._known.login}: the password is wrong, "
                reason += "it knows no such user, or no SASL"
            case NoAuthError():
                reason = f"{ensemble} does not permit this at {path}: its ACL is for others"
            case InvalidACLError():
                reason = f"{ensemble} knows no owner that {path} could have: it has accepted "
                reason += "neither a user nor a certificate (zookeeper.set.acl)"
            case _:
                reason = f"{ensemble} refuses {path}: {type(error).__name__} {error}".strip()
        return CoordinationError(reason)


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
