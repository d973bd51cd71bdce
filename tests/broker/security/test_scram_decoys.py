"""Users that do not exist are answered like those that do."""

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


@pytest.mark.parametrize("salt", [bytes(range(200, 216)), b"1e4xsmyonu2ttmd30nf1v5ih3w"])
def test_a_decoy_is_in_the_manner_of_the_users(salt: bytes) -> None:
    """As many iterations, as long a salt, and of digits where Kafka's own tools have made it."""
    decoy = Decoys(users("alice", salt=salt), SHA_256, key=b"key").of("nobody")
    assert decoy.iterations == 9000
    assert len(decoy.salt) == len(salt)
    assert decoy.salt != salt
    made_by_java = salt.isalnum()
    assert all(byte in JAVA_DIGITS for byte in decoy.salt) == made_by_java


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


def test_without_users_of_the_mechanism() -> None:
    """There is nothing to compare them with."""
    decoys = Decoys(users("alice"), SHA_512, key=b"key")
    assert decoys.of("nobody") == decoys.of("nobody") != decoys.of("somebody")
    assert decoys.of("nobody").iterations == 4096
