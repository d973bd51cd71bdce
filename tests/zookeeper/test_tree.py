"""The znode tree: what ZooKeeper promises about versions, counters, sessions and transactions."""

import random

import pytest

from barnabas_zookeeper.errors import (
    BadArgumentsError,
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    ZooKeeperError,
)
from barnabas_zookeeper.tree import (
    OPEN,
    Acl,
    Check,
    CloseSession,
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
    name_of,
    parent_of,
)


def grown(*operations: Operation) -> Tree:
    """A tree in which the operations were committed one by one."""
    tree = Tree()
    for operation in operations:
        tree.commit([operation], now_ms=100)
    return tree


def contents(tree: Tree) -> list[object]:
    """All that can be known of a tree, to compare two."""
    return [tree.zxid, list(tree.save()), {s: tree.ephemerals(s) for s in tree.sessions()}]


def test_a_created_znode_has_its_data_and_the_stat_of_its_transaction() -> None:
    """Creation sets all transaction ids and times, and leaves versions at zero."""
    tree = grown(Create("/a"), Create("/a/b", b"data"))
    data, stat = tree.get("/a/b")
    assert data == b"data"
    assert (stat.czxid, stat.mzxid, stat.pzxid) == (2, 2, 2)
    assert (stat.ctime_ms, stat.mtime_ms) == (100, 100)
    assert (stat.version, stat.cversion, stat.data_length, stat.num_children) == (0, 0, 4, 0)
    assert tree.children("/") == ["a"]


def test_setting_data_raises_the_version_and_keeps_the_creation() -> None:
    """A conditional write is possible because each change of data gets another version."""
    tree = grown(Create("/a", b"1"))
    tree.commit([SetData("/a", b"2", 0)], now_ms=200)
    data, stat = tree.get("/a")
    assert (data, stat.version, stat.czxid, stat.mzxid) == (b"2", 1, 1, 2)
    assert (stat.ctime_ms, stat.mtime_ms) == (100, 200)


def test_the_children_version_counts_creations_and_deletions() -> None:
    """A parent's cversion tells readers that its children changed, also back to what they were."""
    tree = grown(Create("/a"), Create("/a/1"), Create("/a/2"), Delete("/a/1"))
    stat = tree.exists("/a")
    assert stat is not None
    assert (stat.cversion, stat.num_children, stat.pzxid) == (3, 1, 4)
    assert stat.mzxid == 1


def test_no_data_is_not_empty_data() -> None:
    """ZooKeeper tells null from an empty array, and Kafka writes both."""
    tree = grown(Create("/null"), Create("/empty", b""))
    assert tree.get("/null")[0] is None
    assert tree.get("/empty")[0] == b""


def test_sequential_names_never_come_back() -> None:
    """The number behind a sequential znode grows even when its predecessors are gone."""
    tree = grown(Create("/q"))
    first = tree.commit([Create("/q/n_", sequential=True)], now_ms=1).paths[0]
    tree.commit([Delete(first)], now_ms=1)
    second = tree.commit([Create("/q/n_", sequential=True)], now_ms=1).paths[0]
    bare = tree.commit([Create("/q/", sequential=True)], now_ms=1).paths[0]
    assert (first, second, bare) == ("/q/n_0000000000", "/q/n_0000000001", "/q/0000000002")


def test_ephemeral_znodes_are_listed_by_session_and_have_no_children() -> None:
    """Whoever ends a session must find all that goes with it."""
    tree = grown(Create("/a"), Create("/a/x", ephemeral_owner=7), Create("/b", ephemeral_owner=8))
    assert tree.sessions() == [7, 8]
    assert tree.ephemerals(7) == ["/a/x"]
    with pytest.raises(NoChildrenForEphemeralsError):
        tree.commit([Create("/a/x/y")], now_ms=1)
    tree.commit([Delete("/a/x")], now_ms=1)
    assert tree.sessions() == [8]


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (Create("/no/child"), NoNodeError),
        (Create("/a"), NodeExistsError),
        (Create("/"), NodeExistsError),
        (Create("a"), BadArgumentsError),
        (Create("/a//b"), BadArgumentsError),
        (Create("/a/"), BadArgumentsError),
        (Create("/a/./b"), BadArgumentsError),
        (Create("/a/.."), BadArgumentsError),
        (Create("/a/\0"), BadArgumentsError),
        (SetData("/no", b""), NoNodeError),
        (SetData("/a", b"", 5), BadVersionError),
        (Delete("/no"), NoNodeError),
        (Delete("/a"), NotEmptyError),
        (Delete("/a/b", 1), BadVersionError),
        (Delete("/"), BadArgumentsError),
        (Check("/no"), NoNodeError),
        (Check("/a", 3), BadVersionError),
    ],
)
def test_a_refused_operation_changes_nothing(
    operation: Operation, error: type[ZooKeeperError]
) -> None:
    """Refusals are typed, and say which operation of the transaction it was."""
    tree = grown(Create("/a"), Create("/a/b"))
    before = contents(tree)
    with pytest.raises(error) as caught:
        tree.commit([Check("/a"), operation], now_ms=1)
    assert caught.value.index == 1
    assert contents(tree) == before


def test_a_transaction_is_one_transaction_id() -> None:
    """All znodes that one transaction touches carry its zxid."""
    tree = Tree()
    committed = tree.commit([Create("/a"), Create("/a/b"), SetData("/a", b"x")], now_ms=1)
    assert committed.zxid == tree.zxid == 1
    assert tree.get("/a")[1].mzxid == tree.get("/a/b")[1].czxid == 1


def test_a_transaction_that_fails_at_its_end_is_taken_back_whole() -> None:
    """Creations, changes and deletions before the refusal leave no trace, counters included."""
    tree = grown(Create("/a", b"1"), Create("/a/b", ephemeral_owner=3), Create("/c"))
    before = contents(tree)
    with pytest.raises(NodeExistsError):
        tree.commit(
            [
                Create("/c/d"),
                Create("/c/s", sequential=True),
                SetData("/a", b"2"),
                Delete("/a/b"),
                Delete("/a"),
                Create("/a"),
                Create("/a"),
            ],
            now_ms=999,
        )
    assert contents(tree) == before


def test_each_change_triggers_its_watches() -> None:
    """Each change is reported for the znode, and for its parent where the children changed."""
    tree = Tree()
    created = tree.commit([Create("/a"), SetData("/a", b"x")], now_ms=1)
    deleted = tree.commit([Delete("/a")], now_ms=1)
    assert created.events == (
        Event(EventType.CREATED, "/a"),
        Event(EventType.CHILDREN_CHANGED, "/"),
        Event(EventType.DATA_CHANGED, "/a"),
    )
    assert deleted.events == (
        Event(EventType.DELETED, "/a"),
        Event(EventType.CHILDREN_CHANGED, "/"),
    )


def random_operation(choose: random.Random) -> Operation:
    """Any operation on a small set of paths, so that most kinds of success and refusal occur."""
    path = "".join(f"/{choose.choice('ab')}" for _ in range(choose.randint(1, 3)))
    version = choose.choice([-1, -1, 0, 1])
    match choose.randrange(5):
        case 0 | 1:
            owner = choose.choice([0, 0, 0, 5])
            return Create(path, choose.choice([None, b"", b"x"]), choose.random() < 0.2, owner)
        case 2:
            return SetData(path, b"y", version)
        case 3:
            return Delete(path, version)
        case _:
            return Check(path, version)


@pytest.mark.parametrize("seed", range(20))
def test_any_history_can_be_saved_restored_and_taken_back(seed: int) -> None:
    """A failed transaction leaves the tree as it was; a restored tree goes on like the original."""
    choose = random.Random(seed)
    tree = Tree()
    for step in range(200):
        before = contents(tree)
        try:
            operations = [random_operation(choose) for _ in range(choose.randint(1, 4))]
            tree.commit(operations, now_ms=step)
        except ZooKeeperError:
            assert contents(tree) == before
        restored = Tree.restore(tree.save(), zxid=tree.zxid)
        assert contents(restored) == contents(tree)
        assert [restored.exists(n.path) for n in tree.save()] == [
            tree.exists(n.path) for n in tree.save()
        ]
        tree = restored


def test_restoring_refuses_an_orphan() -> None:
    """A snapshot that lost a parent is not a tree."""
    saved = [node for node in grown(Create("/a"), Create("/a/b")).save() if node.path != "/a"]
    with pytest.raises(NoNodeError):
        Tree.restore(saved, zxid=2)


def test_paths_split_into_parent_and_name() -> None:
    """Both halves, also directly under the root."""
    assert (parent_of("/a/b"), name_of("/a/b")) == ("/a", "b")
    assert (parent_of("/a"), name_of("/a")) == ("/", "a")


def test_closing_a_session_takes_its_znodes_along() -> None:
    """What a client left behind goes in one transaction, and whoever watches hears of it."""
    tree = grown(
        OpenSession(7, Session(6000, b"secret")),
        Create("/a"),
        Create("/a/mine", ephemeral_owner=7),
        Create("/a/yours", ephemeral_owner=8),
    )
    committed = tree.commit([CloseSession(7)], now_ms=200)
    assert committed.events == (
        Event(EventType.DELETED, "/a/mine"),
        Event(EventType.CHILDREN_CHANGED, "/a"),
    )
    assert tree.children("/a") == ["yours"]
    assert tree.open_sessions == {}


def test_access_is_kept_with_a_version_of_its_own() -> None:
    """Changing who may what is no change of the data."""
    mine = (Acl(31, "digest", "me:x"),)
    tree = grown(Create("/a"), SetAcl("/a", mine, 0))
    acl, stat = tree.acl("/a")
    assert acl == mine
    assert (stat.version, stat.aversion, stat.mzxid) == (0, 1, 1)
    assert tree.acl("/")[0] == OPEN
    with pytest.raises(BadVersionError, match="aversion is 1, not 0"):
        tree.commit([SetAcl("/a", mine, 0)], now_ms=1)


def test_a_refused_transaction_leaves_sessions_and_access_as_they_were() -> None:
    """All or nothing holds for every kind of operation."""
    tree = grown(OpenSession(7, Session(1, b"a")), Create("/e", ephemeral_owner=7))
    before = (contents(tree), dict(tree.open_sessions))
    with pytest.raises(NoNodeError):
        tree.commit(
            [
                OpenSession(7, Session(2, b"b")),
                OpenSession(8, Session(2, b"b")),
                SetAcl("/e", ()),
                CloseSession(7),
                Delete("/none"),
            ],
            now_ms=1,
        )
    assert (contents(tree), tree.open_sessions) == before
