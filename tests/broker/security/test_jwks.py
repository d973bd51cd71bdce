"""JSON Web Key Sets: which keys verify which signatures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from barnabas_broker.security.jwks import ALGORITHMS, BYTES_MAX, KEYS_MAX, KeySet, KeySetError
from tests.oracle.tokens import Signer, key_set

RSA, EC, EDWARDS = Signer("rsa"), Signer("ec", "ES256"), Signer("edwards", "EdDSA")
SYMMETRIC = {"kty": "oct", "kid": "secret", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}


def keys_of(*entries: Any) -> KeySet:
    """The usable keys among these."""
    return KeySet.parse(json.dumps({"keys": list(entries)}).encode())


def test_keys_are_for_the_algorithms_of_their_kind() -> None:
    """Of RSA for all of RSA's, of a curve for the curve's."""
    keys = KeySet.parse(key_set(RSA, EC, EDWARDS))
    assert {each.id: sorted(each.algorithms) for each in keys.keys} == {
        "rsa": ["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
        "ec": ["ES256"],
        "edwards": ["EdDSA"],
    }


def test_a_key_with_an_algorithm_is_for_that_one() -> None:
    """An algorithm of another kind of key leaves nothing."""
    found = keys_of(RSA.entry(alg="PS256"), EC.entry(alg="RS256"), EDWARDS.entry(alg=7))
    assert [(each.id, each.algorithms) for each in found.keys] == [("rsa", frozenset(("PS256",)))]


def test_keys_are_found_by_id_and_algorithm() -> None:
    """A token that names no key is checked by the first of its algorithm."""
    keys = KeySet.parse(key_set(EC, RSA, Signer("other")))
    assert keys.find("other", "RS256") is keys.keys[2]
    assert keys.find(None, "RS512") is keys.keys[1]
    for key_id, algorithm in (("rsa", "ES256"), ("none", "RS256"), (["rsa"], "RS256")):
        assert keys.find(key_id, algorithm) is None


@pytest.mark.parametrize(
    "entry",
    [
        SYMMETRIC,
        RSA.entry(use="enc"),
        RSA.entry(key_ops=["sign"]),
        RSA.entry(kid=7),
        RSA.entry(n=""),
        RSA.entry(n=7),
        RSA.entry(kty="EC"),
        EC.entry(crv="P-256K"),
        EC.entry(x="AAAA"),
        EDWARDS.entry(crv="X25519"),
        {"kty": ["RSA"]},
        {},
        "text",
        None,
        json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 1024).public_key())),
        json.loads(ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256K1()).public_key())),
    ],
)
def test_keys_that_are_left_out(entry: Any) -> None:
    """Symmetric, weak, broken and foreign ones; the others of the set are used."""
    assert [each.id for each in keys_of(entry, EC.entry()).keys] == ["ec"]


def test_a_private_key_is_reduced_to_its_public_half() -> None:
    """Whoever published it: what is not needed is not kept."""
    entry = json.loads(RSAAlgorithm.to_jwk(RSA.private))
    entry.pop("key_ops")
    (key,) = keys_of(entry).keys
    assert key.public.public_numbers() == RSA.private.public_key().public_numbers()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "list called keys"),
        (b'{"keys":{}}', "list called keys"),
        (b'{"keys":[]}', "no key"),
        (json.dumps({"keys": [SYMMETRIC]}).encode(), "no key"),
        (json.dumps({"keys": [{}] * (KEYS_MAX + 1)}).encode(), "more than"),
        (b" " * (BYTES_MAX + 1), "more than"),
    ],
)
def test_invalid_key_sets_are_refused(data: bytes, message: str) -> None:
    """It is refused as a whole."""
    with pytest.raises(KeySetError, match=message):
        KeySet.parse(data)


def test_no_algorithm_is_symmetric() -> None:
    """Nor `none`, in any spelling."""
    assert all(name[:2] in ("RS", "PS", "ES", "Ed") for name in ALGORITHMS)
