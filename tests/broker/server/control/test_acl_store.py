"""ACLs in the coordination data, as several brokers keep them together."""

from __future__ import annotations

import json
from random import Random

import pytest

from barnabas_broker.controller.writes import CHANGE_NOTIFICATION_TTL_MS
from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    Entries,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from barnabas_broker.security.authorizer import AclAuthorizer
from barnabas_broker.server.control import acl_store
from barnabas_broker.server.control.acl_store import AclStore
from barnabas_broker.zk.acl_znodes import CHANGE_ROOTS, LITERAL, PREFIXED
from barnabas_broker.zk.store import CoordinationError, Create, Delete, SetData
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from tests.broker.controller.ensemble import NOW_MS, Ensemble, Lost

TOPIC = ResourcePattern(ResourceType.TOPIC, "orders")
PREFIX = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "ö-", PatternType.PREFIXED)
READ = AccessControlEntry("User:alice", "*", AclOperation.READ, Permission.ALLOW)
WRITE = READ._replace(operation=AclOperation.IDEMPOTENT_WRITE, permission=Permission.DENY)
TOPIC_PATH = "/kafka-acl/Topic/orders"


class Member:
    """The ACLs of one broker."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.store = ensemble.session()
        self.authorizer = AclAuthorizer(Rules(), monotonic_s=lambda: 0.0)
        self.acls = AclStore(self.store, self.authorizer, random=Random(1))
        self.acls.load(now_ms=NOW_MS)

    @property
    def known(self) -> dict[ResourcePattern, Entries]:
        """What it goes by."""
        return dict(self.authorizer.rules.entries)

    def add(
        self, pattern: ResourcePattern, *entries: AccessControlEntry, now: int = NOW_MS
    ) -> None:
        """Add entries."""
        self.acls.update(pattern, frozenset(entries).union, now_ms=now)

    def remove(self, pattern: ResourcePattern, *entries: AccessControlEntry) -> None:
        """Remove entries."""
        gone = frozenset(entries)
        self.acls.update(pattern, lambda had: had - gone, now_ms=NOW_MS)

    def hear(self) -> bool:
        """Read what it was told of; whether that was anything."""
        if reported := self.store.take_heard():
            self.acls.catch_up(now_ms=NOW_MS, everything=False)
        return reported


@pytest.fixture
def members(ensemble: Ensemble) -> tuple[Member, Member]:
    """Two brokers."""
    return Member(ensemble), Member(ensemble)


def test_another_broker_goes_by_a_change(members: tuple[Member, Member]) -> None:
    """Additions and deletions, of literal and of prefixed patterns."""
    one, other = members
    one.add(TOPIC, READ)
    one.add(PREFIX, READ, WRITE)
    assert other.hear()
    assert other.known == one.known == {TOPIC: {READ}, PREFIX: {READ, WRITE}}
    other.remove(PREFIX, READ)
    other.remove(TOPIC, READ)
    assert one.hear()
    assert one.known == other.known == {PREFIX: {WRITE}}
    one.add(TOPIC, READ)
    assert other.hear()
    assert other.known == one.known


def test_znodes_are_those_of_kafka(ensemble: Ensemble, members: tuple[Member, Member]) -> None:
    """`kafka.zk.ZkAclStore`: paths, JSON, and the two kinds of announcements."""
    members[0].add(TOPIC, READ)
    members[0].add(PREFIX, WRITE)
    data, _ = ensemble.tree.get(TOPIC_PATH)
    entry = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
    assert json.loads(data or b"") == {"version": 1, "acls": [entry]}
    data, _ = ensemble.tree.get("/kafka-acl-extended/prefixed/TransactionalId/ö-")
    assert json.loads(data or b"")["acls"][0]["operation"] == "IdempotentWrite"
    changes = [
        ensemble.tree.get(f"{root}/acl_changes_0000000000")[0] for root in CHANGE_ROOTS.values()
    ]
    assert changes[0] == b"TOPIC:orders"
    assert json.loads(changes[1] or b"") == {
        "version": 1,
        "resourceType": "TRANSACTIONAL_ID",
        "name": "ö-",
        "patternType": "PREFIXED",
    }
    members[0].remove(TOPIC, READ)
    assert ensemble.tree.exists(TOPIC_PATH) is None


def test_both_of_two_crossing_changes_count(
    ensemble: Ensemble, members: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one reads again."""
    monkeypatch.setattr(acl_store, "PAUSE_S", (0.0, 0.0))
    one, other = members
    one.add(TOPIC, READ)
    other.store.behind[TOPIC_PATH] = ensemble.tree.get(TOPIC_PATH)
    one.add(TOPIC, WRITE)
    crossings = 0

    def change(had: Entries) -> Entries:
        nonlocal crossings
        crossings += 1
        if crossings == 2:
            other.store.behind.clear()
        return had | {READ._replace(principal="User:bob")}

    other.acls.update(TOPIC, change, now_ms=NOW_MS)
    assert other.known[TOPIC] == {READ, WRITE, READ._replace(principal="User:bob")}


def test_a_race_that_is_always_lost_is_an_error(
    members: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed then, here or there."""
    monkeypatch.setattr(acl_store, "PAUSE_S", (0.0, 0.0))
    one, other = members
    number = 0

    def change(had: Entries) -> Entries:
        nonlocal number
        number += 1
        other.add(TOPIC, READ._replace(principal=f"User:{number}"))
        return had | {WRITE}

    with pytest.raises(CoordinationError, match="races"):
        one.acls.update(TOPIC, change, now_ms=NOW_MS)
    assert WRITE not in other.known[TOPIC]


def test_adding_an_existing_acl_writes_nothing(
    ensemble: Ensemble, members: tuple[Member, Member]
) -> None:
    """Nothing is written, and nobody told."""
    members[0].add(TOPIC, READ)
    before = ensemble.tree.get(TOPIC_PATH)[1]
    members[1].add(TOPIC, READ)
    members[1].remove(PREFIX, READ)
    assert ensemble.tree.get(TOPIC_PATH)[1] == before
    assert members[1].known == {TOPIC: {READ}}


def test_changes_while_the_session_was_away(members: tuple[Member, Member]) -> None:
    """Everything is read again, deletions included."""
    one, other = members
    other.add(PREFIX, READ)
    one.hear()
    one.add(TOPIC, READ)
    one.remove(PREFIX, READ)
    other.store.heard.clear()
    other.acls.catch_up(now_ms=NOW_MS, everything=True)
    assert other.known == {TOPIC: {READ}}
    one.add(PREFIX, READ)
    assert other.hear(), "it is watched again"


def test_a_lost_answer_leaves_nothing_open(members: tuple[Member, Member]) -> None:
    """Whether a change was stored nobody knows; reading everything again tells."""
    one, _ = members
    one.store.losses = [Lost.ANSWER]
    with pytest.raises(CoordinationError):
        one.add(TOPIC, READ)
    assert one.known == {}
    one.acls.catch_up(now_ms=NOW_MS, everything=True)
    assert one.known == {TOPIC: {READ}}


def test_old_announcements_go(ensemble: Ensemble, members: tuple[Member, Member]) -> None:
    """After a quarter of an hour every broker has read them, or reads everything."""
    for number in range(3):
        members[0].add(TOPIC, READ._replace(principal=f"User:{number}"))
    assert len(ensemble.tree.children(CHANGE_ROOTS[LITERAL])) == 3
    members[0].add(TOPIC, READ, now=NOW_MS + CHANGE_NOTIFICATION_TTL_MS + 1)
    assert len(ensemble.tree.children(CHANGE_ROOTS[LITERAL])) == 1


def test_an_unreadable_acl_znode_fails_only_the_startup(
    ensemble: Ensemble, members: tuple[Member, Member], caplog: pytest.LogCaptureFixture
) -> None:
    """A running broker stays with what it knew, a new one does not begin without the rule."""
    one, other = members
    one.add(TOPIC, READ)
    other.hear()
    for broken in (b"{", b"[]", b'{"version":2}', b'{"version":1,"acls":[{"host":"*"}]}'):
        ensemble.commit([SetData(TOPIC_PATH, broken)])
        ensemble.commit([Create(f"{CHANGE_ROOTS[LITERAL]}/acl_changes_", b"Topic:orders", True)])
        other.hear()
        assert other.known == {TOPIC: {READ}}
        assert TOPIC_PATH in caplog.text
        with pytest.raises(MalformedZnodeError, match=TOPIC_PATH):
            Member(ensemble)
        with pytest.raises(MalformedZnodeError, match=TOPIC_PATH):
            other.add(TOPIC, WRITE)
        caplog.clear()


def test_announcements_that_name_nothing(
    ensemble: Ensemble, members: tuple[Member, Member], caplog: pytest.LogCaptureFixture
) -> None:
    """They are told in the log and do no harm; those beside them count."""
    for root, data in (
        (LITERAL, b"orders"),
        (LITERAL, b"\xff"),
        (LITERAL, b"Fish:orders"),
        (LITERAL, b"Topic:a/b"),
        (PREFIXED, b"{"),
        (PREFIXED, b'{"resourceType":"TOPIC","name":"a","patternType":"MATCH"}'),
    ):
        ensemble.commit([Create(f"{CHANGE_ROOTS[root]}/acl_changes_", data, True)])
    members[0].add(TOPIC, READ)
    assert members[1].hear()
    assert caplog.text.count("ACL change notification ignored") == 6
    assert members[1].known == {TOPIC: {READ}}


def test_types_and_operations_of_later_releases(ensemble: Ensemble) -> None:
    """What is not known here matches nothing, and nothing else is lost."""
    Member(ensemble).add(TOPIC, READ)
    entry = {"principal": "User:b", "permissionType": "Allow", "operation": "Fly", "host": "*"}
    data = json.dumps({"version": 1, "acls": [entry]}).encode()
    ensemble.commit([Create("/kafka-acl/Fish"), Create("/kafka-acl/Fish/orders", data)])
    ensemble.commit([Create("/kafka-acl/Topic/air", data), Create("/kafka-acl/Topic/none", None)])
    known = Member(ensemble).known
    assert known.pop(TOPIC) == {READ}
    ((pattern, entries),) = known.items()
    assert pattern.name == "air"
    assert {each.operation for each in entries} == {AclOperation.UNKNOWN}


@pytest.mark.parametrize("name", ["a/b", ".", "..", "", "a\x00b", "a\nb"])
def test_names_that_no_znode_has(members: tuple[Member, Member], name: str) -> None:
    """Refused, instead of written somewhere else."""
    with pytest.raises(KafkaError) as caught:
        members[0].add(ResourcePattern(ResourceType.GROUP, name), READ)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_more_than_a_znode_holds(members: tuple[Member, Member]) -> None:
    """ZooKeeper would hang up, again and again."""
    members[0].store.transaction_bytes_max = 1000
    with pytest.raises(KafkaError, match="too many ACLs"):
        members[0].add(TOPIC, *(READ._replace(principal=f"User:{n}") for n in range(99)))


def test_deleted_znodes_are_created_again(
    ensemble: Ensemble, members: tuple[Member, Member]
) -> None:
    """Parents come back with the next reading of everything, and changes count again."""
    ensemble.commit([Delete(CHANGE_ROOTS[LITERAL])])
    with pytest.raises(Exception, match=CHANGE_ROOTS[LITERAL]):
        members[0].acls.catch_up(now_ms=NOW_MS, everything=False)
    members[0].acls.catch_up(now_ms=NOW_MS, everything=True)
    members[0].add(TOPIC, READ)
    assert members[0].known == {TOPIC: {READ}}
