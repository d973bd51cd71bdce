"""Delegation tokens: their life, who may change it, and what clients log in with."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from barnabas_broker.security.delegation_tokens import (
    PRINCIPAL_CHARACTERS_MAX,
    RENEWERS_MAX,
    TokenCache,
    TokenInformation,
    TokenRules,
)
from barnabas_broker.security.principals import USER, Principal
from barnabas_broker.security.sasl import SaslError
from barnabas_broker.security.scram import ScramMechanism, ScramServer
from barnabas_kafka.client import Scram
from barnabas_kafka.errors import ErrorCode, KafkaError

ALICE, BOB, CAROL = (Principal(USER, name) for name in ("alice", "bob", "carol"))
RULES = TokenRules(max_lifetime_ms=1000, expiry_time_ms=100)
NOW_MS = 5000


def token(**changes: object) -> TokenInformation:
    """A token of alice's that bob may renew and carol has asked for."""
    made = RULES.create(ALICE, CAROL, (BOB,), lifetime_ms=-1, now_ms=NOW_MS)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lifetime_ms", "lives_ms", "expires_ms"),
    [(-1, 1000, 100), (0, 1000, 100), (50, 50, 50), (500, 500, 100), (2**63 - 1, 1000, 100)],
)
def test_lifetimes(lifetime_ms: int, lives_ms: int, expires_ms: int) -> None:
    """No longer than the settings; what is asked for may be less."""
    made = RULES.create(ALICE, ALICE, (), lifetime_ms=lifetime_ms, now_ms=NOW_MS)
    assert (made.max_at_ms, made.expires_at_ms) == (NOW_MS + lives_ms, NOW_MS + expires_ms)
    assert made.issued_at_ms == NOW_MS


def test_ids_are_random() -> None:
    """22 characters of base64 for paths, as Kafka's."""
    ids = {token().id for _ in range(100)}
    assert len(ids) == 100
    assert {len(each) for each in ids} == {22}


@pytest.mark.parametrize(
    "renewers",
    [(BOB,) * (RENEWERS_MAX + 1), (Principal(USER, "x" * PRINCIPAL_CHARACTERS_MAX),)],
)
def test_tokens_are_small(renewers: tuple[Principal, ...]) -> None:
    """Each is held in memory by every broker."""
    with pytest.raises(KafkaError) as refused:
        RULES.create(ALICE, ALICE, renewers, lifetime_ms=-1, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(-1, 100), (0, 0), (7, 7), (5000, 1000)])
def test_renewed(period_ms: int, expires_ms: int) -> None:
    """By its owner or a renewer, up to its longest life."""
    for principal in (ALICE, BOB):
        found = RULES.renew(token(), principal, period_ms=period_ms, now_ms=NOW_MS)
        assert found.expires_at_ms == NOW_MS + expires_ms


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(0, 0), (7, 7), (5000, 1000)])
def test_expired_later(period_ms: int, expires_ms: int) -> None:
    """A token may be told to end soon."""
    found = RULES.expire(token(), BOB, period_ms=period_ms, now_ms=NOW_MS)
    assert found is not None
    assert found.expires_at_ms == NOW_MS + expires_ms


def test_expired_at_once() -> None:
    """With a negative period, even where it has expired already."""
    assert RULES.expire(token(), ALICE, period_ms=-1, now_ms=NOW_MS + 9999) is None


@pytest.mark.parametrize("change", [RULES.renew, RULES.expire])
def test_foreign_and_expired_tokens_cannot_be_changed(change: object) -> None:
    """Others than owner and renewers, the requester among them; and what has expired."""
    assert callable(change)
    for principal, now_ms, code in (
        (CAROL, NOW_MS, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        (ALICE, NOW_MS + 101, ErrorCode.DELEGATION_TOKEN_EXPIRED),
        (ALICE, NOW_MS + 1001, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    ):
        with pytest.raises(KafkaError) as refused:
            change(token(), principal, period_ms=5, now_ms=now_ms)
        assert refused.value.code is code


def test_a_token_is_visible_to_owner_requester_and_renewers() -> None:
    """Owner, requester and renewers see it."""
    assert all(token().is_of(each) for each in (ALICE, BOB, CAROL))
    assert not token().is_of(Principal(USER, "dora"))


def test_the_hmac_is_kafkas() -> None:
    """HmacSHA512 of the id, by `javax.crypto.Mac` with the bytes of the secret."""
    found = base64.b64encode(TokenCache("secret").hmac_of("tokenId")).decode()
    assert found == (
        "9xK3mSxj/bjgpe9Tdbs6+23xcnW9UiZAFn2ypV28j4V7ykiGPSMrsKTacd2Qfma1nY72uD5yhh57fiTu8ZZ/7g=="
    )
    assert TokenCache("other").hmac_of("tokenId") != TokenCache("secret").hmac_of("tokenId")


def test_known_tokens() -> None:
    """By id and by HMAC, until they are gone."""
    cache, one, other = TokenCache("secret"), token(), token()
    cache.publish({one.id: one, other.id: other})
    assert cache.id_of(cache.hmac_of(one.id)) == one.id
    cache.publish({one.id: None, "never known": None})
    assert cache.id_of(cache.hmac_of(one.id)) is None
    assert cache.tokens == {other.id: other}


def log_in(cache: TokenCache, name: str, password: str, *, now_ms: int, as_token: bool) -> object:
    """The exchange of a client with SCRAM-SHA-256; the server."""
    mechanism = ScramMechanism.SCRAM_SHA_256
    server = ScramServer(
        mechanism,
        lambda _: None,
        nonce="server",
        decoy=lambda *_: (b"salt", 4096),
        find_token=lambda token_id: cache.credential(mechanism, token_id, now_ms=now_ms),
    )
    client = Scram(name, password, "SCRAM-SHA-256", delegation_token=as_token).start("client")
    final = client.answer(server.evaluate(client.first()))
    assert final is not None
    assert client.answer(server.evaluate(final)) is None
    return server


def test_logging_in_with_a_token() -> None:
    """The client is the owner, as long as the token is good."""
    cache, one = TokenCache("secret"), token()
    cache.publish({one.id: one})
    password = base64.b64encode(cache.hmac_of(one.id)).decode()
    for _ in range(2):  # The second time from what is kept.
        server = log_in(cache, one.id, password, now_ms=NOW_MS, as_token=True)
        assert isinstance(server, ScramServer)
        assert (server.user, server.token_authenticated) == ("alice", True)
        assert server.expires_at_ms == NOW_MS + 100
    for name, secret, now_ms, as_token in (
        (one.id, password, NOW_MS + 101, True),
        (one.id, password, NOW_MS, False),
        (one.id, password[:-4] + "AAAA", NOW_MS, True),
        ("another", password, NOW_MS, True),
        ("alice", password, NOW_MS, True),
    ):
        with pytest.raises(SaslError, match="unknown user or wrong password"):
            log_in(cache, name, secret, now_ms=now_ms, as_token=as_token)
    cache.publish({one.id: None})
    with pytest.raises(SaslError):
        log_in(cache, one.id, password, now_ms=NOW_MS, as_token=True)


def test_secrets_are_not_shown() -> None:
    """Nor what they are derived from."""
    cache, one = TokenCache("a secret"), token()
    cache.publish({one.id: one})
    found = cache.credential(ScramMechanism.SCRAM_SHA_512, one.id, now_ms=NOW_MS)
    assert "stored_key" not in repr(found)
    assert "secret" not in repr(cache)
