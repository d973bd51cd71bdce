"""SCRAM: the exchange of RFC 7677, and what is refused."""

import hmac
from base64 import b64decode

import pytest

from barnabas_broker.security.sasl import SaslError
from barnabas_broker.security.scram import (
    ScramCredential,
    ScramMechanism,
    ScramServer,
    scram_credential,
)
from barnabas_kafka.client import Scram
from barnabas_kafka.client.sasl import salted_password

SHA_256, SHA_512 = ScramMechanism
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
SERVER_FIRST = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
WITHOUT_PROOF = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE}".encode()
PROOF = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def credential(
    mechanism: ScramMechanism = SHA_256, password: str = "pencil", iterations: int = 4096
) -> ScramCredential:
    """What is stored of a password."""
    name = mechanism.wire_name
    salted = salted_password(name, password, SALT, iterations)  # type: ignore[arg-type]
    return ScramCredential.from_salted_password(mechanism, salted, SALT, iterations)


def decoy(name: str, of_token: bool) -> tuple[bytes, int]:
    """What a user that does not exist is answered with."""
    return hmac.digest(b"token" if of_token else b"user", name.encode(), "sha256"), 4096


def server(
    users: dict[str, ScramCredential] | None = None, mechanism: ScramMechanism = SHA_256
) -> ScramServer:
    """An exchange among these users."""
    known = {"user": credential()} if users is None else users
    return ScramServer(mechanism, known.get, nonce=SERVER_NONCE, decoy=decoy)


def test_the_exchange_of_rfc_7677() -> None:
    """Byte for byte."""
    exchange = server()
    assert exchange.evaluate(FIRST) == SERVER_FIRST
    assert exchange.user is None
    assert exchange.evaluate(WITHOUT_PROOF + b",p=" + PROOF) == SERVER_FINAL
    assert exchange.user == "user"
    with pytest.raises(SaslError, match="after the end"):
        exchange.evaluate(FIRST)


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("name", ["user", "a,b=c", "=2C", "Jošt"])
def test_names_with_commas_and_equals_signs(mechanism: ScramMechanism, name: str) -> None:
    """What the client escapes is read back."""
    exchange = server({name: credential(mechanism, "pass=,word")}, mechanism)
    wire_name = mechanism.wire_name
    client = Scram(name, "pass=,word", wire_name).start("n0nce")  # type: ignore[arg-type]
    final = client.answer(exchange.evaluate(client.first()))
    assert final is not None
    assert client.answer(exchange.evaluate(final)) is None
    assert client.done
    assert exchange.user == name


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,n=user",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=us=2Der,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a\x00c",
        b"n,,n=\xff,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,n=user,r=abc,m=must",
    ],
)
def test_malformed_first_messages(first: bytes) -> None:
    """Nothing but what RFC 5802 allows, without channel binding."""
    with pytest.raises(SaslError):
        server().evaluate(first)


@pytest.mark.parametrize(
    "final",
    [
        b"",
        WITHOUT_PROOF,
        WITHOUT_PROOF + b",p=" + PROOF.lower(),
        WITHOUT_PROOF + b",p=AAAA",
        WITHOUT_PROOF + b",p=A",
        WITHOUT_PROOF.replace(b"biws", b"eSws") + b",p=" + PROOF,
        f"c=biws,r={SERVER_NONCE},p=".encode() + PROOF,
        f"c=biws,r={CLIENT_NONCE},p=".encode() + PROOF,
        WITHOUT_PROOF + b"x,p=" + PROOF,
    ],
)
def test_wrong_last_messages(final: bytes) -> None:
    """A wrong proof, another nonce, a channel binding: none of them authenticates."""
    exchange = server()
    exchange.evaluate(FIRST)
    with pytest.raises(SaslError):
        exchange.evaluate(final)
    assert exchange.user is None


def test_an_unknown_user_looks_like_a_wrong_password() -> None:
    """The first step answers as for a user that exists, with the same salt each time."""
    answers = {server({}).evaluate(FIRST) for _ in range(2)}
    other = server({}).evaluate(FIRST.replace(b"user", b"User"))
    assert len(answers) == 1
    assert other not in answers
    exchange = server({})
    exchange.evaluate(FIRST)
    with pytest.raises(SaslError, match="unknown user or wrong password"):
        exchange.evaluate(WITHOUT_PROOF + b",p=" + PROOF)


def test_too_few_iterations_are_not_accepted() -> None:
    """A weak credential that a tool has written counts as none."""
    exchange = server({"user": credential(iterations=4095)})
    assert exchange.evaluate(FIRST).endswith(b",i=4096")


def test_the_stored_form_is_kafkas() -> None:
    """It is read back, and what is no credential is none."""
    text = credential().format()
    assert text.startswith("salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert ScramCredential.parse(text) == credential()
    users = {"good": {"SCRAM-SHA-256": text}, "bad": {"SCRAM-SHA-256": "salt=?,iterations=1"}}
    assert scram_credential(users, SHA_256, "good") == credential()
    for user, mechanism in (("good", SHA_512), ("bad", SHA_256), ("nobody", SHA_256)):
        assert scram_credential(users, mechanism, user) is None
    assert "stored_key=b" not in repr(credential())
