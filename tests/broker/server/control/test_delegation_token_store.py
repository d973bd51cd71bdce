"""Delegation tokens in the coordination data, as several brokers keep them together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from barnabas_broker.controller.writes import CHANGE_NOTIFICATION_TTL_MS
from barnabas_broker.security.delegation_tokens import TokenCache, TokenInformation, TokenRules
from barnabas_broker.security.principals import USER, Principal
from barnabas_broker.server.control.delegation_token_store import TRIES_MAX, DelegationTokenStore
from barnabas_broker.zk.store import CoordinationError, Create, Delete, Operation, SetData
from barnabas_broker.zk.token_znodes import CHANGES, TOKENS
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_zookeeper.errors import NoNodeError
from tests.broker.controller.ensemble import NOW_MS, Ensemble

ALICE = Principal(USER, "alice")


def token() -> TokenInformation:
    """A new one."""
    return TokenRules(1000, 100).create(ALICE, ALICE, (), lifetime_ms=-1, now_ms=NOW_MS)


def later(had: TokenInformation) -> TokenInformation:
    """It expires a millisecond later."""
    return replace(had, expires_at_ms=had.expires_at_ms + 1)


class Member:
    """The tokens of one broker."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.store = ensemble.session()
        self.cache = TokenCache("secret")
        self.tokens = DelegationTokenStore(self.store, self.cache)
        self.tokens.load(now_ms=NOW_MS)

    def hear(self) -> bool:
        """Read what it was told of; whether that was anything."""
        if reported := self.store.take_heard():
            self.tokens.catch_up(now_ms=NOW_MS, everything=False)
        return reported


@pytest.fixture
def members(ensemble: Ensemble) -> tuple[Member, Member]:
    """Two brokers."""
    return Member(ensemble), Member(ensemble)


def test_another_broker_knows_of_a_change(members: tuple[Member, Member]) -> None:
    """A new token, a later expiry, its end."""
    one, other = members
    made = token()
    one.tokens.create(made, now_ms=NOW_MS)
    assert other.hear()
    assert other.cache.tokens == one.cache.tokens == {made.id: made}
    assert other.tokens.change(made.id, later, now_ms=NOW_MS) == later(made)
    assert one.hear()
    assert one.cache.tokens == {made.id: later(made)}
    assert one.tokens.change(made.id, lambda _: None, now_ms=NOW_MS) is None
    assert other.hear()
    assert other.cache.tokens == one.cache.tokens == {}


def test_a_broker_that_starts_knows_all(ensemble: Ensemble, members: tuple[Member, Member]) -> None:
    """Of before, and of a time in which it was not told."""
    made = [token() for _ in range(3)]
    for each in made:
        members[0].tokens.create(each, now_ms=NOW_MS)
    assert Member(ensemble).cache.tokens == {each.id: each for each in made}
    ensemble.commit([Delete(f"{TOKENS}/{made[0].id}")])
    members[0].tokens.catch_up(now_ms=NOW_MS, everything=True)
    assert made[0].id not in members[0].cache.tokens


def test_znodes_are_those_of_kafka(ensemble: Ensemble, members: tuple[Member, Member]) -> None:
    """Paths, and what tells of a change."""
    made = token()
    members[0].tokens.create(made, now_ms=NOW_MS)
    data, _ = ensemble.tree.get(f"/delegation_token/tokens/{made.id}")
    assert json.loads(data or b"")["owner"] == "User%3Aalice"
    data, _ = ensemble.tree.get("/delegation_token/token_changes/token_change_0000000000")
    assert data == made.id.encode()


def test_a_change_goes_by_what_is_stored(members: tuple[Member, Member]) -> None:
    """Not by what is known: another broker may have changed it a moment ago."""
    one, other = members
    made = token()
    one.tokens.create(made, now_ms=NOW_MS)
    other.hear()
    one.tokens.change(made.id, later, now_ms=NOW_MS)
    assert other.tokens.change(made.id, later, now_ms=NOW_MS) == later(later(made))
    one.hear()
    one.tokens.change(made.id, lambda _: None, now_ms=NOW_MS)
    with pytest.raises(KafkaError) as refused:
        other.tokens.change(made.id, later, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert other.cache.tokens == {}


def test_crossing_changes(ensemble: Ensemble, members: tuple[Member, Member]) -> None:
    """The later one reads again, and gives up where it is always too late."""
    one, other = members
    made = token()
    one.tokens.create(made, now_ms=NOW_MS)
    tries = 0

    def crossed(times: int) -> None:
        nonlocal tries
        tries = 0

        def decide(had: TokenInformation) -> TokenInformation:
            nonlocal tries
            tries += 1
            if tries <= times:
                other.tokens.change(made.id, later, now_ms=NOW_MS)
            return later(had)

        one.tokens.change(made.id, decide, now_ms=NOW_MS)

    crossed(1)
    assert tries == 2
    with pytest.raises(CoordinationError, match="races"):
        crossed(TRIES_MAX)
    other.hear()
    assert other.cache.tokens[made.id].expires_at_ms == made.expires_at_ms + 2 + TRIES_MAX


def test_an_unchanged_token_is_not_written(
    ensemble: Ensemble, members: tuple[Member, Member]
) -> None:
    """Nobody is told of nothing."""
    made = token()
    members[0].tokens.create(made, now_ms=NOW_MS)
    assert members[0].tokens.change(made.id, lambda had: had, now_ms=NOW_MS) == made
    assert len(ensemble.tree.children(CHANGES)) == 1


def test_old_notifications_are_removed(ensemble: Ensemble, members: tuple[Member, Member]) -> None:
    """When every broker has read them long since."""
    for now_ms in (NOW_MS, NOW_MS + CHANGE_NOTIFICATION_TTL_MS + 1):
        members[0].tokens.create(token(), now_ms=now_ms)
    assert list(ensemble.tree.children(CHANGES)) == ["token_change_0000000001"]


def test_two_brokers_that_remove_the_same_notification(
    ensemble: Ensemble, members: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one looks again, and its token is stored."""
    one, other = members
    one.tokens.create(token(), now_ms=NOW_MS)
    later_ms = NOW_MS + CHANGE_NOTIFICATION_TTL_MS + 1
    commit = one.store.commit
    raced: list[TokenInformation] = []

    def be_late(operations: Sequence[Operation], *, now_ms: int) -> Any:
        if not raced:
            raced.append(token())
            other.tokens.create(raced[0], now_ms=later_ms)
        return commit(operations, now_ms=now_ms)

    monkeypatch.setattr(one.store, "commit", be_late)
    made = token()
    one.tokens.create(made, now_ms=later_ms)
    assert one.cache.tokens[made.id] == made
    assert {made.id, raced[0].id} <= set(ensemble.tree.children(TOKENS))


def test_a_notification_that_is_always_gone(
    members: tuple[Member, Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up, and nobody takes the token for stored."""

    def refuse(_operations: Sequence[Operation], *, now_ms: int) -> Any:
        raise NoNodeError(CHANGES)

    monkeypatch.setattr(members[0].store, "commit", refuse)
    with pytest.raises(CoordinationError, match="races"):
        members[0].tokens.create(token(), now_ms=NOW_MS)
    assert members[0].cache.tokens == {}


def test_malformed_znodes_are_passed_over(
    ensemble: Ensemble, members: tuple[Member, Member], caplog: pytest.LogCaptureFixture
) -> None:
    """One token that cannot be read does not hide the others."""
    made = token()
    members[0].tokens.create(made, now_ms=NOW_MS)
    ensemble.commit(
        [
            Create(f"{TOKENS}/broken", b"{}"),
            Create(f"{CHANGES}/token_change_", b"a/b", sequential=True),
            Create(f"{CHANGES}/token_change_", b"broken", sequential=True),
        ]
    )
    assert members[1].hear()
    assert members[1].cache.tokens == {made.id: made}
    assert Member(ensemble).cache.tokens == {made.id: made}
    assert "/delegation_token/tokens/broken" in caplog.text
    ensemble.commit([SetData(f"{TOKENS}/{made.id}", b"not JSON")])
    members[1].tokens.catch_up(now_ms=NOW_MS, everything=True)
    assert members[1].cache.tokens == {}
