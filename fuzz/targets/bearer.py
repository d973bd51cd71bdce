"""OAUTHBEARER: first messages, tokens and key sets, before anybody is authenticated.

Input: a first message of a client; a token's header, or its claims with a signature; a key set.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from barnabas_broker.security.bearer_tokens import TIME_MAX_S, SignedTokens, UnsecuredTokens
from barnabas_broker.security.jwks import ALGORITHMS, KeySet, KeySetError
from barnabas_broker.security.oauthbearer import BearerToken, OAuthBearerServer, TokenError
from barnabas_broker.security.sasl import SaslError
from fuzz.oracle import promise

NOW_S: Final = 1_800_000_000
HEADER: Final = b'{"alg":"EdDSA","kid":"k"}'
NONE: Final = b'{"alg":"none"}'
_PRIVATE: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
_ENTRY: Final[dict[str, Any]] = {
    **json.loads(OKPAlgorithm.to_jwk(_PRIVATE.public_key())),
    "kid": "k",
    "key_ops": ["verify"],
}
_KEYS: Final = KeySet.parse(json.dumps({"keys": [_ENTRY]}).encode())
_SIGNED: Final = SignedTokens(
    keys=lambda: _KEYS, key_missing=lambda: None, now_s=lambda: NOW_S, audience=("kafka",)
)
_UNSECURED: Final = UnsecuredTokens(now_s=lambda: NOW_S, required_scope=("a",))


def check(data: bytes) -> None:
    """Each ends in a value or in its own error; nothing that our key has not signed is sound."""
    _exchange(data)
    signed = _token(HEADER, data)
    _judged(_SIGNED, f"{signed}.{_base64(_PRIVATE.sign(signed.encode()))}")
    unsigned = _token(data, _claims())
    for token in (f"{unsigned}.", f"{unsigned}.{_base64(bytes(64))}", data.decode("latin-1")):
        promise(_judged(_SIGNED, token) is None, "a token that no key has signed is sound")
    _judged(_UNSECURED, f"{_token(NONE, data)}.")
    try:
        keys = KeySet.parse(data)
    except KeySetError:
        return
    promise(bool(keys.keys), "a key set without keys is read")
    promise(all(key.algorithms <= ALGORITHMS for key in keys.keys), "a key is for no signatures")


def _exchange(data: bytes) -> None:
    exchange = OAuthBearerServer(_SIGNED)
    try:
        answer = exchange.evaluate(data)
    except SaslError:
        return
    if exchange.user is not None:
        promise(answer == b"", "a challenge behind success")
        return
    promise("status" in json.loads(answer), "a refusal is a JSON object with a status")
    try:
        exchange.evaluate(b"\x01")
    except SaslError as error:
        promise(error.client_message == answer.decode(), "another refusal behind the first")
    else:
        promise(False, "a refused exchange goes on")


def _judged(validate: SignedTokens | UnsecuredTokens, token: str) -> BearerToken | None:
    try:
        found = validate(token)
    except TokenError as error:
        promise(not isinstance(json.loads(error.challenge), str), "the challenge is no object")
        return None
    promise(bool(found.user), "a sound token names nobody")
    promise(0 < found.expires_at_ms <= (TIME_MAX_S + 1) * 1000, "a token expires at no time")
    return found


def _claims(**others: Any) -> bytes:
    claims = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60, "aud": "kafka", **others}
    return json.dumps(claims).encode()


def _token(header: bytes, claims: bytes) -> str:
    return f"{_base64(header)}.{_base64(claims)}"


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def seeds() -> Iterator[bytes]:
    """Messages, headers, claims and key sets as they should be."""
    yield f"n,,\x01auth=Bearer {_token(HEADER, _claims())}.AAAA\x01\x01".encode()
    yield b"n,a=alice,\x01auth=Bearer a.b.c\x01traceId=7\x01\x01"
    yield HEADER
    yield NONE
    yield _claims(nbf=NOW_S, scope=["a", "b"], jti="1", iss="i")
    yield _claims(scope="a", exp=1.8e9 + 0.5)
    yield json.dumps({"keys": [_ENTRY, {"kty": "oct", "k": "AAAA"}]}).encode()
