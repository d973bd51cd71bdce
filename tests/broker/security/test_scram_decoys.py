"""Users that do not exist are answered like those that do."""

import hashlib

import pytest

from barnabas_broker.security.scram import ScramCredential, ScramMechanism
from barnabas_broker.security.scram_decoys import JAVA_DIGITS, Decoys

SHA_256, SHA_512 = ScramMechanism


def users(
    *names: str, salt: bytes = bytes(24), iterations: int = 9000
) -> dict[str, dict[str, str]]:
    """Settings of users, each with a credential of its own."""
    found = {}
    for name in names:
        salted = name.encode()
        stored = ScramCredential.from_salted_password(SHA_256, salted, salt, iterations)
        found[name] = {SHA_256.wire_name: stored.format()}
    return found


@pytest.mark.parametrize("salt", [bytes(range(200, 216)), b"0123abc"])
def test_a_decoy_is_in_the_manner_of_the_users(salt: bytes) -> None:
    """As many iterations, as long a salt, and of digits where theirs are."""
    decoy = Decoys(users("alice", salt=salt), SHA_256, key=b"key").of("nobody")
    assert decoy.iterations == 9000
    assert len(decoy.salt) == len(salt)
    assert decoy.salt != salt
    assert all(byte in JAVA_DIGITS for byte in decoy.salt) == salt.isalnum()


def test_salts_in_the_manner_of_kafkas_tools() -> None:
    """They write a number of 130 bits: mostly of 25 or 26 digits, of which the first is 1 then."""
    decoys = Decoys(users("alice", salt=b"1e4xsmyonu2ttmd30nf1v5ih3w"), SHA_256, key=b"key")
    salts = [decoys.of(f"nobody-{number}").salt for number in range(100)]
    assert {len(salt) for salt in salts} >= {25, 26}
    assert all(int(salt, 36) < 1 << 130 for salt in salts)
    assert not any(salt.startswith(b"0") for salt in salts)


def test_decoys_are_those_of_all_brokers_and_outlive_them() -> None:
    """Whatever a process has for itself, or in which order it has heard of the users."""
    one = Decoys(users("alice", "bob", "carol"), SHA_256, key=b"one")
    other = Decoys(users("carol", "bob", "alice"), SHA_256, key=b"other")
    names = [f"nobody-{number}" for number in range(100)]
    assert [one.of(name) for name in names] == [other.of(name) for name in names]
    assert len({one.of(name) for name in names}) == len(names)


def test_another_user_changes_few_decoys() -> None:
    """Else each new user would tell which of the others are none."""
    names = [f"nobody-{number}" for number in range(200)]
    known = [f"user-{number}" for number in range(100)]
    before = Decoys(users(*known), SHA_256, key=b"key")
    after = Decoys(users(*known, "newcomer"), SHA_256, key=b"key")
    assert sum(before.of(name) != after.of(name) for name in names) < len(names) / 10


def test_decoy_iterations_do_not_reveal_users() -> None:
    """Else who asks for the names around one sees by their iterations whether it is a user's."""
    known: dict[str, dict[str, str]] = {}
    for number in range(50):
        known |= users(f"user-{number}", iterations=5000 + number)
    names = [f"nobody-{number}" for number in range(5000)]
    decoys = Decoys(known, SHA_256, key=b"key")
    reported = 0
    for number, user in enumerate(known):
        ahead = [name for name in names if public(name) < public(user)]
        nearest = max(ahead, key=public, default=names[0])
        reported += decoys.of(nearest).iterations == 5000 + number
    assert reported < len(known) / 5


def public(name: str) -> bytes:
    """What anybody can work out of a name."""
    return hashlib.sha256(name.encode()).digest()


def test_a_user_cannot_work_out_decoys() -> None:
    """Its own credential, which it knows, is not all that they are made of."""
    before = users("alice") | users("bob")
    after = before | users("bob", salt=bytes(23) + b"1")
    names = [f"nobody-{number}" for number in range(100)]
    one, other = (Decoys(each, SHA_256, key=b"key") for each in (before, after))
    assert not any(one.of(name) == other.of(name) for name in names)


def test_without_users_of_the_mechanism() -> None:
    """There is nothing to compare them with."""
    decoys = Decoys(users("alice"), SHA_512, key=b"key")
    assert decoys.of("nobody") == decoys.of("nobody") != decoys.of("somebody")
    assert decoys.of("nobody").iterations == 4096
