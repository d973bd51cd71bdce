"""The exchanges of SASL, against the examples of the RFCs and against servers that cheat."""

from __future__ import annotations

import pytest

from barnabas_kafka.client.errors import AuthenticationError
from barnabas_kafka.client.sasl import ITERATIONS_MAX, OAuthBearer, Plain, Scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
SERVER_FIRST = f"r={SERVER_NONCE},s={SALT},i=4096".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SHA_256 = Scram("user", "pencil", "SCRAM-SHA-256")


def test_scram_sha_256_is_that_of_rfc_7677() -> None:
    """Every token of the example, and the server's signature is accepted."""
    exchange = SHA_256.start(NONCE)
    assert exchange.first() == b"n,,n=user,r=" + NONCE.encode()
    assert exchange.answer(SERVER_FIRST) == (
        f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    assert not exchange.done
    assert exchange.answer(SERVER_FINAL) is None
    assert exchange.done


def test_scram_names_are_escaped() -> None:
    """A comma or an equals sign would end the attribute."""
    assert Scram("a=b,c", "p").start("n").first() == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (f"r=other{SERVER_NONCE},s={SALT},i=4096", "nonce"),
        (f"r={NONCE},s={SALT},i=4096", "nonce"),
        (f"r={SERVER_NONCE},s={SALT},i=1", "iterations"),
        (f"r={SERVER_NONCE},s={SALT},i={ITERATIONS_MAX + 1}", "iterations"),
        (f"m=x,r={SERVER_NONCE},s={SALT},i=4096", "extension"),
        (f"r={SERVER_NONCE},s=*,i=4096", "malformed"),
        (f"r={SERVER_NONCE},i=4096", "malformed"),
        ("", "malformed"),
    ],
)
def test_a_first_message_that_cheats_is_refused(challenge: str, reason: str) -> None:
    """A nonce of others, a cost that is nothing or that occupies the client, and nonsense."""
    exchange = SHA_256.start(NONCE)
    with pytest.raises(AuthenticationError, match=reason):
        exchange.answer(challenge.encode())
    assert not exchange.done


@pytest.mark.parametrize(
    ("final", "reason"),
    [
        (b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "signature"),
        (b"v=", "signature"),
        (b"e=invalid-proof", "invalid-proof"),
        (b"x=1", "malformed"),
    ],
)
def test_a_server_without_the_password_is_refused(final: bytes, reason: str) -> None:
    """Who only says that the password was right has not shown to know it."""
    exchange = SHA_256.start(NONCE)
    exchange.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationError, match=reason):
        exchange.answer(final)
    assert not exchange.done


def test_plain_sends_everything_at_once() -> None:
    """Without an authorization id; a null would move the password into the name."""
    exchange = Plain("alice", "secret").start("")
    assert exchange.first() == b"\0alice\0secret"
    assert exchange.answer(b"") is None
    assert exchange.done
    with pytest.raises(AuthenticationError):
        Plain("alice\0admin", "secret").start("")


def test_oauthbearer_sends_the_token_and_extensions() -> None:
    """As RFC 7628 has it; an empty answer is success."""
    exchange = OAuthBearer(lambda: "", {"logicalCluster": "c"}).start_with("tok")
    assert exchange.first() == b"n,,\x01auth=Bearer tok\x01logicalCluster=c\x01\x01"
    assert exchange.answer(b"") is None
    assert exchange.done


@pytest.mark.parametrize("challenge", [b'{"status":"invalid_token"}', b"nonsense", b"[]"])
def test_oauthbearer_reports_the_servers_error(challenge: bytes) -> None:
    """The server's JSON, or that there is no reason in it."""
    exchange = OAuthBearer(lambda: "").start_with("tok")
    exchange.first()
    with pytest.raises(AuthenticationError, match=r"invalid_token|no reason"):
        exchange.answer(challenge)
    assert not exchange.done


def test_secrets_are_not_shown() -> None:
    """Not in a log line that prints the configuration."""
    shown = repr([Plain("a", "hidden"), Scram("a", "hidden"), OAuthBearer(lambda: "hidden")])
    assert "hidden" not in shown
