"""Which bearer tokens are sound: signed ones, and unsecured ones where they are asked for."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from barnabas_broker.security.bearer_tokens import TIME_MAX_S, SignedTokens, UnsecuredTokens
from barnabas_broker.security.jwks import KeySet
from barnabas_broker.security.oauthbearer import TokenError
from tests.oracle.tokens import Signer, key_set, sound_claims, unsecured

SIGNER = Signer()
SIGNERS = [SIGNER, Signer("ps", "PS512"), Signer("es", "ES384"), Signer("ed", "EdDSA")]
KEYS = KeySet.parse(key_set(*SIGNERS))
SKEW_S = 30
AUDIENCE, ISSUER = ("kafka", "other"), "https://issuer"


def signed(keys: KeySet | None = KEYS, **settings: Any) -> SignedTokens:
    """Checks tokens by the keys above."""
    missing = settings.pop("missing", [])
    return SignedTokens(
        keys=lambda: keys,
        key_missing=lambda: missing.append(True),
        now_s=time.time,
        **{"clock_skew_s": SKEW_S, **settings},
    )


def refusal(check: Any, token: str) -> str:
    """Why a token is refused; no reason has anything of the token."""
    with pytest.raises(TokenError) as error:
        check(token)
    for part in token.split("."):
        assert len(part) < 4 or part not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("signer", SIGNERS, ids=lambda each: each.algorithm)
def test_a_sound_token(signer: Signer) -> None:
    """Its subject is the user, and it says how long that is true."""
    exp = int(time.time()) + 77
    found = signed()(signer.token("alice", exp=exp, nbf=1, jti="id", scope="a"))
    assert (found.user, found.expires_at_ms) == ("alice", exp * 1000)


def encoded(data: bytes) -> str:
    """As the parts of a token are."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_nesting_without_end() -> None:
    """It is refused like anything that is no token, whoever has signed it."""
    deep = encoded(b"[" * 45_000)
    assert "malformed" in refusal(signed(), f"{deep}.{deep}.{deep}")
    head = encoded(json.dumps({"alg": "EdDSA", "kid": "ed"}).encode())
    signer = SIGNERS[-1]
    signature = encoded(signer.private.sign(f"{head}.{deep}".encode()))
    assert "malformed" in refusal(signed(), f"{head}.{deep}.{signature}")


def test_claims_may_have_other_names() -> None:
    """The user is in `sasl.oauthbearer.sub.claim.name`."""
    check = signed(subject_claim="client_id", scope_claim="scp")
    assert check(SIGNER.token(sub=None, client_id="app", scp=["a", "b"])).user == "app"
    assert "client_id" in refusal(check, SIGNER.token())
    assert "scp" in refusal(check, SIGNER.token(client_id="app", scp=["a", " a"]))


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": None}, "no claim exp"),
        ({"iat": None}, "no claim iat"),
        ({"sub": None}, "claim sub"),
        ({"sub": ""}, "claim sub"),
        ({"sub": " "}, "claim sub"),
        ({"sub": " \r\n\t\0"}, "claim sub is empty"),
        ({"sub": ["alice"]}, "malformed"),
        ({"sub": "\ud800"}, "claim sub is malformed"),
        ({"sub": "alice\udfff"}, "claim sub is malformed"),
        ({"exp": int(time.time()) - SKEW_S - 5}, "expired"),
        ({"exp": -1}, "no time"),
        ({"exp": 0}, "expired"),
        ({"exp": "9999999999"}, "no time"),
        ({"exp": True}, "no time"),
        ({"exp": float("inf")}, "no time"),
        ({"exp": float("nan")}, "no time"),
        ({"exp": TIME_MAX_S + 1}, "no time"),
        ({"exp": 10**400}, "no time"),
        ({"exp": [1]}, "no time"),
        ({"iat": int(time.time()) + 1000}, "not valid yet"),
        ({"nbf": int(time.time()) + 1000}, "not valid yet"),
        ({"nbf": "soon"}, "no time"),
        ({"jti": 5}, "malformed"),
        ({"scope": ["a", "a"]}, "claim scope"),
        ({"scope": [1]}, "claim scope"),
        ({"scope": ""}, "claim scope"),
        ({"aud": "kafka"}, "audience"),
    ],
)
def test_claims_that_are_refused(claims: dict[str, Any], reason: str) -> None:
    """Required ones that are missing, times that do not hold now, and what has the wrong type."""
    assert reason in refusal(signed(), SIGNER.token(**claims))


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        (" alice\r\n", "alice"),
        ("\u00a0alice", "\u00a0alice"),
        ("alice\u2003", "alice\u2003"),
        ("alice\x85", "alice\x85"),
        ("\U0001f511", "\U0001f511"),
    ],
)
def test_a_user_whose_name_begins_with_a_space_is_another_one(subject: str, user: str) -> None:
    """Only what Java trims is left out: an identity provider may know both."""
    assert signed()(SIGNER.token(subject)).user == user
    assert UnsecuredTokens(now_s=time.time)(unsecured(sound_claims(subject))).user == user


def test_clocks_may_differ() -> None:
    """By `sasl.oauthbearer.clock.skew.seconds`."""
    now = int(time.time())
    token = SIGNER.token(exp=now - 5, iat=now + 20, nbf=now + 20)
    assert signed()(token).user == "alice"
    assert "expired" in refusal(signed(clock_skew_s=2), token)


def test_audience_and_issuer() -> None:
    """One of the audiences, and the issuer."""
    check = signed(audience=AUDIENCE, issuer=ISSUER)
    for audience in ("kafka", ["else", "other"]):
        assert check(SIGNER.token(aud=audience, iss=ISSUER)).user == "alice"
    assert "no claim aud" in refusal(check, SIGNER.token(iss=ISSUER))
    assert "no claim iss" in refusal(check, SIGNER.token(aud="kafka"))
    others: list[Any] = ["else", ["else"], [], [7], {"kafka": 1}]
    for other in others:
        refusal(check, SIGNER.token(aud=other, iss=ISSUER))
    assert "issuer" in refusal(check, SIGNER.token(aud="kafka", iss=f"{ISSUER}/"))


def test_a_changed_token() -> None:
    """A claim, and a signature of another key under the right key's id."""
    head, claims, signature = SIGNER.token().split(".")
    changed = unsecured({**sound_claims("mallory")}).split(".")[1]
    assert "signature" in refusal(signed(), f"{head}.{changed}.{signature}")
    assert "signature" in refusal(signed(), f"{head}.{claims}.{signature[:-8]}AAAAAAAA")
    forged = Signer("mallory").token(header={"kid": "first"})
    assert "signature" in refusal(signed(), forged)


def test_symmetric_signatures_with_the_public_key() -> None:
    """The oldest trick: what everybody knows taken for a shared secret."""
    public = SIGNER.private.public_key().public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    head = unsecured(sound_claims(), header={"alg": "HS256", "kid": "first"}).rpartition(".")[0]
    signature = base64.urlsafe_b64encode(hmac.digest(public, head.encode(), hashlib.sha256))
    token = f"{head}.{signature.rstrip(b'=').decode()}"
    assert "algorithm" in refusal(signed(), token)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 7, ["RS256"], "HS512"])
def test_tokens_without_a_signature(algorithm: Any) -> None:
    """However `none` is spelled; and whatever else is in the place of its name."""
    token = unsecured(sound_claims(), header={"alg": algorithm, "kid": "first"})
    assert refusal(signed(), token)
    assert refusal(signed(), f"{token}AAAA")


def test_keys_are_used_for_their_own_algorithms() -> None:
    """Neither for those of other keys, nor for another of their kind that they are not for."""
    assert "no key" in refusal(signed(), SIGNER.token(header={"kid": "es"}))
    narrow = KeySet.parse(json.dumps({"keys": [SIGNER.entry(alg="PS256")]}).encode())
    assert "no key" in refusal(signed(narrow), SIGNER.token())


def test_unknown_keys_are_asked_for() -> None:
    """A token of a key that is not known makes the keys be read again."""
    missing: list[bool] = []
    assert "no key" in refusal(signed(missing=missing), Signer("new").token())
    assert missing == [True]
    assert "not known yet" in refusal(signed(None), SIGNER.token())


def test_keys_in_the_token_are_not_trusted() -> None:
    """A token that brings its key, or the address of it, is checked by the known keys only."""
    mallory = Signer("mallory")
    for header in ({"jwk": mallory.entry()}, {"jku": "https://evil"}, {"x5u": "https://evil"}):
        assert "no key" in refusal(signed(), mallory.token(header=header))


@pytest.mark.parametrize("header", [{"crit": ["b64"], "b64": False}, {"crit": []}])
def test_critical_extensions(header: dict[str, Any]) -> None:
    """None is known, so none is acceptable."""
    token = unsecured(sound_claims(), header={"alg": "RS256", "kid": "first", **header})
    assert refusal(signed(), f"{token}AAAA")


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "e30.e30.", "W10.W10.AAAA", f"{'W1' * 9000}.e30.A"],
)
def test_malformed_tokens_are_refused(token: str) -> None:
    """It is refused by both checks, whatever it is."""
    with pytest.raises(TokenError):
        signed()(token)
    with pytest.raises(TokenError):
        UnsecuredTokens(now_s=time.time)(token)


# --- unsecured tokens


def test_unsecured_tokens_are_believed() -> None:
    """A listener has this check only where it is asked for."""
    check = UnsecuredTokens(now_s=time.time)
    assert check(unsecured(sound_claims("bob"))).user == "bob"
    assert check(unsecured({"sub": "bob", "exp": time.time() + 5})).user == "bob"
    assert "unsecured" in refusal(check, SIGNER.token())
    assert "unsecured" in refusal(check, unsecured(sound_claims(), signature="AAAA"))


def test_options_of_unsecured_tokens() -> None:
    """Those that Kafka's handler has."""
    check = UnsecuredTokens(
        now_s=time.time, subject_claim="name", scope_claim="scp", required_scope=("a", "b"),
        clock_skew_s=10,
    )  # fmt: skip
    now = time.time()
    claims = {"name": "bob", "scp": ["b", "a", "c"], "iat": now - 60, "exp": now - 5}
    assert check(unsecured(claims)).user == "bob"
    with pytest.raises(TokenError) as error:
        check(unsecured({**claims, "scp": "a"}))
    assert error.value.challenge == '{"status":"insufficient_scope", "scope":"[a, b]"}'
    assert "before it was issued" in refusal(check, unsecured({**claims, "iat": now}))
    assert "expired" in refusal(check, unsecured({**claims, "exp": now - 15}))
