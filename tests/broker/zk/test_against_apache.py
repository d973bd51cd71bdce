"""The session store on a real ZooKeeper: the contract of the embedded one, and its own troubles."""

import queue
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from barnabas_broker.server.control.supervisor import NONE, end_session
from barnabas_broker.zk.credentials import Credentials, Login
from barnabas_broker.zk.session import SessionStore
from barnabas_broker.zk.session_counts import SessionState
from barnabas_broker.zk.store import (
    Check,
    CoordinationError,
    Create,
    Delete,
    SetData,
    Watch,
)
from barnabas_zookeeper import errors
from tests.oracle.apache import OwnZooKeeper, ZooKeeper
from tests.waiting import ANSWER, START, seconds, wait_for

#: As long as ZooKeeper grants: no session shall end, and no answer be late, on a busy machine.
SESSION_MS = 40_000
CONNECTION_MS = 600_000


@pytest.fixture(scope="module", params=[ZooKeeper, OwnZooKeeper], ids=["apache", "own"])
def zookeeper(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeper]:
    """A standalone server, Apache's and ours: all that follows holds for both."""
    with request.param(directory=tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


def connected(
    zookeeper: ZooKeeper, chroot: str, session_timeout_ms: int = SESSION_MS
) -> SessionStore:
    """A session of its own, below a chroot."""
    store = SessionStore(f"{zookeeper.connect}{chroot}", session_timeout_ms=session_timeout_ms)
    store.open(connection_timeout_ms=CONNECTION_MS)
    return store


@pytest.fixture
def store(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[SessionStore]:
    """A session below a chroot that did not exist."""
    opened = connected(zookeeper, f"/deep/{tmp_path.name}")
    yield opened
    opened.close()


@pytest.fixture
def mute_at_first(zookeeper: ZooKeeper) -> Iterator[str]:
    """An address of the ensemble at which the first who connects is never answered.

    ZooKeeper is like that for some 30 ms between binding its port and having set up the rest.
    """
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as ends:

        def serve() -> None:
            ends.enter_context(server.accept()[0])
            asking = ends.enter_context(server.accept()[0])
            answering = ends.enter_context(
                socket.create_connection(("127.0.0.1", zookeeper.port), timeout=seconds(START))
            )
            back = threading.Thread(target=pass_on, args=(answering, asking))
            back.start()
            pass_on(asking, answering)
            back.join()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """What one says goes to the other, and that it has ended."""
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def test_a_member_that_never_answers_is_asked_again(mute_at_first: str) -> None:
    """Long before a session has passed, of which it would else be all."""
    store = SessionStore(mute_at_first, session_timeout_ms=100_000)
    store.open(connection_timeout_ms=50_000)
    store.commit([Create("/heard-at-last")], now_ms=1)
    assert store.exists("/heard-at-last") is not None
    store.commit([Delete("/heard-at-last")], now_ms=1)
    store.close()


def test_data_is_read_as_written(store: SessionStore) -> None:
    """No data and empty data are two things, as they are for Kafka."""
    committed = store.commit(
        [Create("/a"), Create("/a/empty", b""), Create("/a/b", b"one"), SetData("/a/b", b"two", 0)],
        now_ms=1,
    )
    assert committed.paths == ("/a", "/a/empty", "/a/b", "/a/b")
    assert (store.get("/a")[0], store.get("/a/empty")[0]) == (None, b"")
    data, stat = store.get("/a/b")
    assert (data, stat.version, stat.data_length, stat.czxid) == (b"two", 1, 3, committed.zxid)
    assert store.exists("/a") is not None
    assert store.exists("/none") is None
    assert store.children("/a") == ["b", "empty"]
    store.commit([Check("/a/b", 1), Delete("/a/b", 1)], now_ms=1)
    assert store.children("/a") == ["empty"]


def test_many_are_read_in_order(store: SessionStore) -> None:
    """More than are ever in flight; what is missing leaves a gap."""
    store.commit([Create(f"/n{number}", b"%d" % number) for number in range(25)], now_ms=1)
    found = store.get_many([f"/n{number}" for number in range(30)])
    assert [None if each is None else each[0] for each in found] == [
        *(b"%d" % number for number in range(25)),
        *[None] * 5,
    ]
    names = store.children_many(["/", *(f"/n{number}" for number in range(30))])
    assert names[0] is not None
    assert {f"n{number}" for number in range(25)} <= {*names[0]}
    assert names[1:] == [*[[]] * 25, *[None] * 5]


def test_names_in_sequence(store: SessionStore) -> None:
    """The answer has the name that the znode got, without the chroot."""
    committed = store.commit([Create("/s_", b"x", sequential=True)] * 2, now_ms=1)
    assert committed.paths == ("/s_0000000000", "/s_0000000001")


@pytest.mark.parametrize(
    ("operation", "refusal"),
    [
        (Create("/a"), errors.NodeExistsError),
        (Create("/none/b"), errors.NoNodeError),
        (SetData("/a", b"", 9), errors.BadVersionError),
        (Check("/a", 9), errors.BadVersionError),
        (Delete("/none"), errors.NoNodeError),
        (Delete("/a"), errors.NotEmptyError),
        (Create("/a/brief/b"), errors.NoChildrenForEphemeralsError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Create | SetData) else None,
)
def test_all_or_nothing(
    store: SessionStore,
    operation: Create | SetData | Delete | Check,
    refusal: type[errors.ZooKeeperError],
) -> None:
    """The refusal is typed, names its znode and its place, and nothing else has happened."""
    brief = Create("/a/brief", ephemeral_owner=store.session)
    store.commit([Create("/a"), brief], now_ms=1)
    with pytest.raises(refusal) as caught:
        store.commit([Create("/first"), operation, Create("/last")], now_ms=1)
    assert (caught.value.path, caught.value.index) == (operation.path, 1)
    assert store.exists("/first") is None


def test_reading_what_is_not_there(store: SessionStore) -> None:
    """The refusal names the path below the chroot."""
    with pytest.raises(errors.NoNodeError) as caught:
        store.get("/none")
    assert caught.value.path == "/none"
    with pytest.raises(errors.NoNodeError):
        store.children("/none")


def test_a_session_takes_its_ephemeral_znodes_with_it(zookeeper: ZooKeeper) -> None:
    """Closing is how a broker is gone at once; others who wait see it."""
    first, second = connected(zookeeper, "/two"), connected(zookeeper, "/two")
    first.commit([Create("/brief", ephemeral_owner=first.session)], now_ms=1)
    stat = second.exists("/brief")
    assert stat is not None
    assert stat.ephemeral_owner == first.session != second.session
    first.close()
    assert second.wait_until_gone("/brief")
    second.close()


def test_a_session_that_lives_is_waited_for_in_vain(zookeeper: ZooKeeper) -> None:
    """The wait ends when every dead session would have."""
    first, second = connected(zookeeper, "/vain"), connected(zookeeper, "/vain", 6000)
    first.commit([Create("/brief", ephemeral_owner=first.session)], now_ms=1)
    assert not second.wait_until_gone("/brief")
    first.close()
    second.close()


def test_watches_report_changes_by_others(zookeeper: ZooKeeper) -> None:
    """Of data, of coming and going, of children; each once, until it is watched again."""
    store, other = connected(zookeeper, "/heard"), connected(zookeeper, "/heard")
    heard: queue.Queue[str | None] = queue.Queue()
    store.subscribe(heard.put)
    for _ in range(2):  # Watching twice is hearing once.
        store.watch("/new", Watch.DATA)
        store.watch("/", Watch.CHILDREN)
    other.commit([Create("/new", b"1")], now_ms=1)
    assert {heard.get(timeout=seconds(ANSWER)), heard.get(timeout=seconds(ANSWER))} == {"/new", "/"}
    other.commit([SetData("/new", b"2")], now_ms=1)
    store.watch("/new", Watch.DATA)
    other.commit([SetData("/new", b"3")], now_ms=1)
    assert heard.get(timeout=seconds(ANSWER)) == "/new"
    assert heard.empty()
    store.watch("/none", Watch.CHILDREN)
    store.close()
    other.close()


def test_many_are_watched_at_once(zookeeper: ZooKeeper) -> None:
    """More than are ever in flight, whether they are there or not; but no children of nothing."""
    store, other = connected(zookeeper, "/watched"), connected(zookeeper, "/watched")
    heard: queue.Queue[str | None] = queue.Queue()
    store.subscribe(heard.put)
    paths = [f"/n{number}" for number in range(25)]
    store.watch_many(paths, Watch.CHILDREN)  # Waits for nothing, and can be asked for again.
    other.commit([Create(path) for path in paths[:15]], now_ms=1)
    store.watch_many(paths, Watch.DATA)
    store.watch_many(paths, Watch.CHILDREN)
    other.commit([SetData(paths[0], b"1"), Create(paths[20]), Create(f"{paths[14]}/x")], now_ms=1)
    reported = {heard.get(timeout=seconds(ANSWER)) for _ in range(3)}
    assert reported == {paths[0], paths[20], paths[14]}
    store.close()
    other.close()


def test_an_expired_session(zookeeper: ZooKeeper) -> None:
    """Its ephemeral znodes are gone, the subscriber hears, and a new session has another number."""
    store = connected(zookeeper, "/expired")
    heard: queue.Queue[str | None] = queue.Queue()
    store.subscribe(heard.put)
    before = store.session
    store.commit([Create("/brief", ephemeral_owner=before)], now_ms=1)
    # Whoever knows id and password of a session may end it.
    twin = KazooClient(zookeeper.connect, client_id=store.credentials)
    twin.start(seconds(START))
    twin.stop()
    twin.close()
    assert heard.get(timeout=seconds(ANSWER)) is None
    assert store.session != before
    assert (store.counts.state, store.counts.expires) == (SessionState.CONNECTED, 1)
    assert store.exists("/brief") is None
    with pytest.raises(CoordinationError, match=f"0x{before:x} has ended"):
        store.commit([Create("/brief", ephemeral_owner=before)], now_ms=1)
    store.close()


class Notes:
    """What a store tells its heir, as the supervisor would take it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def secure(self, material: bytes) -> None:
        """The ensemble has no TLS."""
        raise AssertionError

    def hand_over(self, session: int, password: bytes, timeout_ms: int, hosts: str) -> None:
        """A session."""
        self.lines.append(f"{session % (1 << 64):x} {password.hex()} {timeout_ms} {hosts}")

    def forget(self) -> None:
        """None any more."""
        self.lines.append(NONE)


def test_a_supervisor_ends_sessions(zookeeper: ZooKeeper) -> None:
    """With what the store told: at once, without harm when it had ended, and not after `close`."""
    notes = Notes()
    store = SessionStore(zookeeper.connect, session_timeout_ms=60_000, heir=notes)
    store.open(connection_timeout_ms=CONNECTION_MS)
    heard: queue.Queue[str | None] = queue.Queue()
    store.subscribe(heard.put)
    before = store.session
    store.commit([Create("/supervised", ephemeral_owner=before)], now_ms=1)
    first = notes.lines[-1]
    assert end_session(first) == f"0x{before:x} is closed now"
    assert heard.get(timeout=seconds(ANSWER)) is None
    assert store.exists("/supervised") is None
    assert notes.lines[-1].startswith(f"{store.session:x} ")
    assert end_session(first) == ""
    store.close()
    assert notes.lines[-1] == NONE
    assert end_session(notes.lines[-2]) == ""


def test_a_process_that_hangs_loses_its_session(zookeeper: ZooKeeper) -> None:
    """Though kazoo's thread runs, and another asks in vain; then there is a new session."""
    hung = threading.Event()
    store = SessionStore(zookeeper.connect, session_timeout_ms=4000, hung=hung.is_set)
    store.open(connection_timeout_ms=CONNECTION_MS)
    heard: queue.Queue[str | None] = queue.Queue()
    store.subscribe(heard.put)
    before = store.session
    store.commit([Create("/hung", ephemeral_owner=before)], now_ms=1)
    with ThreadPoolExecutor() as others, closing(connected(zookeeper, "")) as watcher:
        hung.set()
        asked = others.submit(store.exists, "/hung")
        assert watcher.wait_until_gone("/hung")
        with pytest.raises(CoordinationError):
            asked.result()
        hung.clear()
        assert heard.get(timeout=seconds(START)) is None
    assert store.session != before
    store.close()


def test_a_process_that_hangs_can_be_ended(zookeeper: ZooKeeper) -> None:
    """Its session with it."""
    store = SessionStore(zookeeper.connect, session_timeout_ms=SESSION_MS, hung=lambda: True)
    with pytest.raises(CoordinationError):
        store.open(connection_timeout_ms=1000)
    store.close()


def test_an_ensemble_that_goes_and_comes_back(tmp_path: Path) -> None:
    """Within the session nothing is lost but the watches; while it is away calls fail in time."""
    with ZooKeeper(directory=tmp_path) as zookeeper:
        store = SessionStore(zookeeper.connect, session_timeout_ms=12_000)
        store.open(connection_timeout_ms=CONNECTION_MS)
        heard: queue.Queue[str | None] = queue.Queue()
        store.subscribe(heard.put)
        session = store.session
        store.commit([Create("/brief", ephemeral_owner=session)], now_ms=1)
        store.watch("/brief", Watch.DATA)
        zookeeper.kill()
        with pytest.raises(CoordinationError, match="ZooKeeper at"):
            store.get("/brief")
        with pytest.raises(CoordinationError):
            store.commit([Create("/late")], now_ms=1)
        assert (store.counts.state, store.counts.connects) == (SessionState.CONNECTING, 1)
        zookeeper.start()
        assert heard.get(timeout=seconds(ANSWER)) is None
        assert store.exists("/late") is None
        assert (store.counts.state, store.counts.connects) == (SessionState.CONNECTED, 2)
        assert store.counts.disconnects >= 1
        zookeeper.kill()
        store.close()  # There is nobody to tell; it ends all the same.


def test_an_ensemble_that_refuses_for_a_while(tmp_path: Path) -> None:
    """A session that was accepted once is tried again and again, under a new number."""
    users = tmp_path / "users"
    provider = "org.apache.zookeeper.server.auth"

    def know(password: str) -> None:
        users.write_text(
            f'Server {{ {provider}.DigestLoginModule required user_kafka="{password}"; }};'
        )

    know("right")
    with ZooKeeper(
        directory=tmp_path / "zookeeper",
        overrides={"authProvider.sasl": f"{provider}.SASLAuthenticationProvider"},
        jvm_flags=[f"-Djava.security.auth.login.config={users}"],
    ) as zookeeper:
        login = Login(username="kafka", password="right")
        store = SessionStore(
            zookeeper.connect, session_timeout_ms=4000, credentials=Credentials(login=login)
        )
        store.open(connection_timeout_ms=CONNECTION_MS)
        before = store.session
        zookeeper.kill()
        know("another")
        zookeeper.start()
        wait_for(
            "two refusals", lambda: store.counts.refusals, until=lambda refusals: refusals >= 2
        )
        with pytest.raises(CoordinationError):
            store.get("/")
        zookeeper.kill()
        know("right")
        zookeeper.start()
        wait_for("a session that may read", lambda: store.exists("/"), retry=(CoordinationError,))
        assert store.session != before
        store.close()


def test_an_ensemble_without_sasl(zookeeper: ZooKeeper) -> None:
    """Refuses who wants it, in words; so does ours, which has none."""
    login = Login(username="kafka", password="secret")
    store = SessionStore(
        zookeeper.connect, session_timeout_ms=SESSION_MS, credentials=Credentials(login=login)
    )
    with pytest.raises(CoordinationError, match="refuses the user kafka") as caught:
        store.open(connection_timeout_ms=CONNECTION_MS)
    assert "secret" not in str(caught.value)
    store.close()


def test_a_digest_owns_what_it_makes(zookeeper: ZooKeeper) -> None:
    """By ZooKeeper's own scheme, which ours knows, too: others may look, but not touch."""
    mine = SessionStore(
        f"{zookeeper.connect}/digest",
        session_timeout_ms=SESSION_MS,
        credentials=Credentials(digest="kafka:secret", set_acl=True),
    )
    mine.open(connection_timeout_ms=CONNECTION_MS)
    mine.commit([Create("/config"), Create("/config/users", b"s3cret")], now_ms=1)
    other = connected(zookeeper, "/digest")
    assert other.children("/config") == ["users"]
    for attempt in (
        lambda: other.exists("/config/users"),
        lambda: other.get("/config/users"),
        lambda: other.commit([SetData("/config", b"x", -1)], now_ms=1),
        lambda: other.commit([Create("/config/x")], now_ms=1),
    ):
        with pytest.raises(CoordinationError, match="its ACL is for others"):
            attempt()
    mine.commit([SetData("/config", b"x", -1)], now_ms=1)
    mine.close()
    other.close()


def test_creator_acls_without_an_identity_are_refused(zookeeper: ZooKeeper) -> None:
    """A certificate that the ensemble does not look at, for instance."""
    store = SessionStore(
        zookeeper.connect, session_timeout_ms=SESSION_MS, credentials=Credentials(set_acl=True)
    )
    store.open(connection_timeout_ms=CONNECTION_MS)
    with pytest.raises(CoordinationError, match="knows no owner that /nobodys could have"):
        store.commit([Create("/nobodys")], now_ms=1)
    store.close()
