"""The session store on a real ZooKeeper: the contract of the embedded one, and its own troubles."""

import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from barnabas_broker.zk.session import SessionStore
from barnabas_broker.zk.store import (
    Check,
    CoordinationError,
    Create,
    Delete,
    SetData,
    Watch,
)
from barnabas_zookeeper import errors
from tests.oracle.apache import ZooKeeper

SESSION_MS = 6000


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A standalone server."""
    with ZooKeeper(directory=tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


def connected(zookeeper: ZooKeeper, chroot: str) -> SessionStore:
    """A session of its own, below a chroot."""
    store = SessionStore(f"{zookeeper.connect}{chroot}", session_timeout_ms=SESSION_MS)
    store.open(connection_timeout_ms=20_000)
    return store


@pytest.fixture
def store(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[SessionStore]:
    """A session below a chroot that did not exist."""
    opened = connected(zookeeper, f"/deep/{tmp_path.name}")
    yield opened
    opened.close()


def test_what_is_written_is_read(store: SessionStore) -> None:
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
    first, second = connected(zookeeper, "/vain"), connected(zookeeper, "/vain")
    first.commit([Create("/brief", ephemeral_owner=first.session)], now_ms=1)
    assert not second.wait_until_gone("/brief")
    first.close()
    second.close()


def test_changes_by_others_are_heard(zookeeper: ZooKeeper) -> None:
    """Of data, of coming and going, of children; each once, until it is watched again."""
    store, other = connected(zookeeper, "/heard"), connected(zookeeper, "/heard")
    heard: queue.Queue[str | None] = queue.Queue()
    store.subscribe(heard.put)
    for _ in range(2):  # Watching twice is hearing once.
        store.watch("/new", Watch.DATA)
        store.watch("/", Watch.CHILDREN)
    other.commit([Create("/new", b"1")], now_ms=1)
    assert {heard.get(timeout=10), heard.get(timeout=10)} == {"/new", "/"}
    other.commit([SetData("/new", b"2")], now_ms=1)
    store.watch("/new", Watch.DATA)
    other.commit([SetData("/new", b"3")], now_ms=1)
    assert heard.get(timeout=10) == "/new"
    assert heard.empty()
    store.watch("/none", Watch.CHILDREN)
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
    twin.start()
    twin.stop()
    twin.close()
    assert heard.get(timeout=20) is None
    assert store.session != before
    assert store.exists("/brief") is None
    with pytest.raises(CoordinationError, match=f"0x{before:x} has ended"):
        store.commit([Create("/brief", ephemeral_owner=before)], now_ms=1)
    store.close()


def test_an_ensemble_that_goes_and_comes_back(tmp_path: Path) -> None:
    """Within the session nothing is lost but the watches; while it is away calls fail in time."""
    with ZooKeeper(directory=tmp_path) as zookeeper:
        store = SessionStore(zookeeper.connect, session_timeout_ms=4000)
        store.open(connection_timeout_ms=20_000)
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
        zookeeper.start()
        assert heard.get(timeout=30) is None
        assert store.exists("/late") is None
        zookeeper.kill()
        store.close()  # There is nobody to tell; it ends all the same.
