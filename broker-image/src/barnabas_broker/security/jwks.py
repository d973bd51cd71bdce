"""JSON Web Key Sets (RFC 7517): the keys that verify the signatures of bearer tokens.

Each key says which algorithms it is for: by its type, by its curve, and by its own `alg` if it has
one. So no token can have a key taken for another kind of key; symmetric keys are left out, and with
them every way to have a public key taken for a shared secret.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

logger = logging.getLogger(__name__)

BYTES_MAX: Final = 1 << 20
KEYS_MAX: Final = 1000
"""What a key set may be at most."""

RSA_BITS: Final = range(2048, 16_384 + 1)
_OF_RSA: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
_OF_CURVES: Final = {
    "secp256r1": frozenset(("ES256",)),
    "secp384r1": frozenset(("ES384",)),
    "secp521r1": frozenset(("ES512",)),
}
_OF_EDWARDS: Final = frozenset(("EdDSA",))
ALGORITHMS: Final = _OF_RSA.union(_OF_EDWARDS, *_OF_CURVES.values())
"""The accepted signature algorithms, all asymmetric."""

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey | Ed448PublicKey


class KeySetError(ValueError):
    """A text is no key set, or one without a key that could be used; one line says which."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key, and the algorithms that it verifies."""

    id: str | None
    algorithms: frozenset[str]
    public: PublicKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeySet:
    """The usable keys of a key set, in its order."""

    keys: tuple[VerificationKey, ...]

    @classmethod
    def parse(cls, data: bytes) -> "KeySet":
        """Read a key set, without keys of other kinds (RFC 7517); raises KeySetError."""
        if len(data) > BYTES_MAX:
            raise KeySetError(f"more than {BYTES_MAX} bytes")
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            raise KeySetError("not JSON") from None
        entries = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            raise KeySetError("no JSON object with a list called keys")
        if len(entries) > KEYS_MAX:
            raise KeySetError(f"more than {KEYS_MAX} keys")
        keys = tuple(key for entry in entries if (key := _key(entry)) is not None)
        if not keys:
            raise KeySetError("no key in it that verifies signatures")
        return cls(keys)

    def find(self, key_id: object, algorithm: str) -> VerificationKey | None:
        """The first key of that id, any where a token names none, for that algorithm."""
        return next(
            (key for key in self.keys if algorithm in key.algorithms and key_id in (None, key.id)),
            None,
        )


def _key(entry: object) -> VerificationKey | None:
    """A key of a key set, None for one that verifies no signatures here."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    operations, key_id = entry.get("key_ops"), entry.get("kid")
    if isinstance(operations, list) and "verify" not in operations:
        return None
    if key_id is not None and not isinstance(key_id, str):
        return None
    public = _public(entry)
    algorithms = frozenset() if public is None else _algorithms(public)
    if "alg" in entry:
        algorithms &= {entry["alg"]} if isinstance(entry["alg"], str) else set()
    if public is None or not algorithms:
        logger.debug("Ignoring key %r of a JSON Web Key Set: it verifies no signatures", key_id)
        return None
    return VerificationKey(key_id, algorithms, public)


def _public(entry: Mapping[str, Any]) -> PublicKey | None:
    try:
        match entry.get("kty"):
            case "RSA":
                found: Any = RSAAlgorithm.from_jwk(dict(entry))
            case "EC":
                found = ECAlgorithm.from_jwk(dict(entry))
            case "OKP":
                found = OKPAlgorithm.from_jwk(dict(entry))
            case _:
                return None
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, UnsupportedAlgorithm):
        return None
    if hasattr(found, "public_key"):  # A private key: what is not needed is not kept.
        found = found.public_key()
    return found if isinstance(found, PublicKey) else None


def _algorithms(key: PublicKey) -> frozenset[str]:
    if isinstance(key, RSAPublicKey):
        return _OF_RSA if key.key_size in RSA_BITS else frozenset()
    if isinstance(key, EllipticCurvePublicKey):
        return _OF_CURVES.get(key.curve.name, frozenset())
    return _OF_EDWARDS
