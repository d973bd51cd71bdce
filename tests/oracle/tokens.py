"""Bearer tokens for tests: keys of every kind, the key sets that publish them, signed tokens."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

HOUR_S: Final = 3600
_MADE: Final[Mapping[str, Callable[[], Any]]] = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "PS512": lambda: rsa.generate_private_key(65537, 2048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


@cache
def private_key(algorithm: str, name: str) -> Any:
    """A key of that name: the same as long as the tests run, for RSA's take long to make."""
    return _MADE[algorithm]()


class Signer:
    """Signs tokens with a key of its own."""

    def __init__(self, key_id: str | None = "first", algorithm: str = "RS256") -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self.private = private_key(algorithm, str(key_id))

    def entry(self, **changes: Any) -> dict[str, Any]:
        """The public key in a key set."""
        kind: Any = {"E": ECAlgorithm, "R": RSAAlgorithm, "P": RSAAlgorithm}.get(self.algorithm[0])
        if self.algorithm == "EdDSA":
            kind = OKPAlgorithm
        assert kind is not None
        found: dict[str, Any] = json.loads(kind.to_jwk(self.private.public_key()))
        found.pop("key_ops", None)
        if self.key_id is not None:
            found["kid"] = self.key_id
        return {**found, **changes}

    def token(self, subject: str = "alice", *, header: Any = None, **claims: Any) -> str:
        """A token that is sound for an hour; claims that are None are left out."""
        reported = {**sound_claims(subject), **claims}
        reported = {name: value for name, value in reported.items() if value is not None}
        names = {"kid": self.key_id} if self.key_id is not None else {}
        return jwt.encode(
            reported, self.private, self.algorithm, headers={**names, **(header or {})}
        )


def key_set(*signers: Signer) -> bytes:
    """The key set that publishes their keys."""
    return json.dumps({"keys": [each.entry() for each in signers]}).encode()


def sound_claims(subject: str = "alice") -> dict[str, Any]:
    """What a token has to say at least."""
    now = int(time.time())
    return {"sub": subject, "iat": now, "exp": now + HOUR_S}


def unsecured(claims: Mapping[str, Any], *, header: Any = None, signature: str = "") -> str:
    """A token that nobody has signed."""
    return f"{_encoded(header or {'alg': 'none'})}.{_encoded(claims)}.{signature}"


def first_message(token: str, *, authzid: str = "", extensions: str = "") -> bytes:
    """The client's first message, as RFC 7628 has it; extensions end with a byte 0x01."""
    named = f"a={authzid}" if authzid else ""
    return f"n,{named},\x01auth=Bearer {token}\x01{extensions}\x01".encode()


def _encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
