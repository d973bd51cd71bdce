"""Passwords as Kafka keeps them in ZooKeeper: read back, and by nobody without the secret."""

from __future__ import annotations

import pytest

from barnabas_broker.security.password_encoder import (
    PasswordEncoder,
    PasswordError,
    is_encoded,
)
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.keys.security import PASSWORD_ITERATIONS_MAX as ITERATIONS_MAX


def encoder(**settings: str) -> PasswordEncoder:
    """By the end of the settings' names."""
    named = {f"password.encoder.{name.replace('_', '.')}": it for name, it in settings.items()}
    return PasswordEncoder(BrokerSettings.from_mapping(named))


@pytest.mark.parametrize("password", ["", "pencil, =:", "päßwörd \U0001f511", "x" * 5000])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"key_length": "256", "iterations": "1024"},
        {"keyfactory_algorithm": "PBKDF2WithHmacSHA1"},
    ],
)
def test_a_password_is_read_back(password: str, settings: dict[str, str]) -> None:
    """However it is encoded, by whoever has the secret; and no two lines are the same."""
    written = encoder(secret="s", **settings).encode(password)
    assert is_encoded(written)
    assert encoder(secret="s").decode(written) == password
    assert encoder(secret="s", **settings).encode(password) != written


def test_the_secret_before() -> None:
    """While it is given, its passwords are read."""
    written = encoder(secret="before").encode("pencil")
    assert encoder(secret="now", old_secret="before").decode(written) == "pencil"
    with pytest.raises(PasswordError, match="does not decrypt it"):
        encoder(secret="now").decode(written)
    with pytest.raises(PasswordError, match=r"password\.encoder\.secret not set"):
        encoder().decode(written)


@pytest.mark.parametrize(
    ("part", "other", "reason"),
    [
        ("iterations:4096", f"iterations:{ITERATIONS_MAX + 1}", "rounds"),
        ("iterations:4096", "iterations:x", "malformed"),
        ("keyLength:128", "keyLength:8", "not offered"),
        ("AES/CBC/PKCS5Padding", "DES/CBC/PKCS5Padding", "not offered"),
        ("salt:", "salt:!", "malformed"),
        ("initializationVector:", "initializationVector:AAAA", "malformed"),
        ("encryptedPassword:", "encryptedPassword:AAAA", "malformed"),
        ("passwordLength:6", "passwordLength:7", "does not decrypt"),
        ("passwordLength:6", "", "malformed"),
    ],
)
def test_damaged_passwords_are_refused(part: str, other: str, reason: str) -> None:
    """Told in a line that has nothing of it."""
    written = encoder(secret="s").encode("pencil")
    assert part in written
    with pytest.raises(PasswordError, match=reason) as reported:
        encoder(secret="s").decode(written.replace(part, other))
    assert "pencil" not in str(reported.value)
