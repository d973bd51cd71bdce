"""Passwords in ZooKeeper: what Apache's encoder writes is read here, and the reverse."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from barnabas_broker.security.password_encoder import PasswordEncoder
from barnabas_kafka.settings.broker import BrokerSettings
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PROGRAM: Final = str(Path(__file__).parent / "java" / "Passwords.java")
SECRET: Final = "of the cluster, ü"
PASSWORD: Final = "pencil, =: ä\U0001f511"


@pytest.mark.parametrize("bits", ["128", "256"])
@pytest.mark.parametrize("derivation", ["", "PBKDF2WithHmacSHA1"])
def test_each_reads_the_other(derivation: str, bits: str) -> None:
    """With the secret and no more: the rest is in what is stored."""
    settings = {"password.encoder.secret": SECRET, "password.encoder.key.length": bits}
    if derivation:
        settings["password.encoder.keyfactory.algorithm"] = derivation
    ours = PasswordEncoder(BrokerSettings.from_mapping(settings))

    def theirs(verb: str, text: str) -> str:
        done = run_tool(PROGRAM, verb, SECRET, derivation, bits, text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert ours.decode(theirs("encode", PASSWORD)) == PASSWORD
    assert theirs("decode", ours.encode(PASSWORD)) == PASSWORD
