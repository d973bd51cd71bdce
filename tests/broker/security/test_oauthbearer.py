"""OAUTHBEARER's exchange: the first message as RFC 7628 has it, and answers as Kafka's."""

from __future__ import annotations

import pytest

from barnabas_broker.security.oauthbearer import (
    TOKEN_BYTES_MAX,
    BearerToken,
    FirstMessage,
    OAuthBearerServer,
    TokenError,
)
from barnabas_broker.security.sasl import SaslError
from tests.oracle.tokens import first_message

TOKEN = "head.claims.signature"


def sound(token: str) -> BearerToken:
    """Every token is alice's."""
    assert token == TOKEN
    return BearerToken("alice", 1234)


def refused(token: str) -> BearerToken:
    """No token is sound."""
    raise TokenError("it has expired")


@pytest.mark.parametrize(
    "message",
    [
        first_message(TOKEN),
        first_message(TOKEN, authzid="alice"),
        first_message(TOKEN, extensions="traceId=a b,c\x01logicalCluster=lkc\x01"),
        f"n,,\x01a=b\x01auth=bEARER   {TOKEN}\x01\x01".encode(),
    ],
)
def test_a_sound_token(message: bytes) -> None:
    """Authorization id and extensions are optional; the scheme is in any case."""
    exchange = OAuthBearerServer(sound)
    assert exchange.evaluate(message) == b""
    assert (exchange.user, exchange.expires_at_ms) == ("alice", 1234)
    with pytest.raises(SaslError):
        exchange.evaluate(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01other=x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer a b\x01\x01",
        b"n,,\x01auth=Bearer a=b\x01\x01",
        b"n,,\x01auth=Bearer a,b\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"n,,\x01auth=Bearer a\x01\x01\x01",
        b"n,,\x01auth=Bearer a\x01x1=y\x01\x01",
        b"n,,\x01auth=Bearer a\x01x=\x01\x01",
        b"n,,\x01auth=Bearer a\x01x=\xc3\xbc\x01\x01",
        b"n,a=b=c,\x01auth=Bearer a\x01\x01",
        b"y,,\x01auth=Bearer a\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer a\x01\x01",
        b"\0alice\0wonder",
        first_message("a" * (TOKEN_BYTES_MAX + 1)),
    ],
)
def test_messages_without_a_token(message: bytes) -> None:
    """They end the exchange, and the client is told nothing about them."""
    exchange = OAuthBearerServer(sound)
    with pytest.raises(SaslError) as error:
        exchange.evaluate(message)
    assert error.value.client_message is None
    assert exchange.user is None


def test_an_authorization_id_that_is_not_the_tokens() -> None:
    """Nobody acts for another user."""
    exchange = OAuthBearerServer(sound)
    with pytest.raises(SaslError) as error:
        exchange.evaluate(first_message(TOKEN, authzid="bob"))
    reported = (
        "Client requested an authorization id (bob) that is different from the token's principal"
    )
    assert reported in (error.value.client_message or "")
    assert exchange.user is None


def test_a_refused_token() -> None:
    """The client gets a JSON object, and acknowledges it; then the exchange has failed."""
    exchange = OAuthBearerServer(refused)
    assert exchange.evaluate(first_message(TOKEN)) == b'{"status":"invalid_token"}'
    assert exchange.user is None
    with pytest.raises(SaslError) as error:
        exchange.evaluate(b"\x01")
    assert error.value.client_message == '{"status":"invalid_token"}'
    assert "it has expired" in str(error.value)
    assert TOKEN not in str(error.value)


def test_one_attempt_in_an_exchange() -> None:
    """Behind a refused token another one does not help."""
    exchange = OAuthBearerServer(lambda token: sound(token) if token == TOKEN else refused(token))
    assert exchange.evaluate(first_message("other")) == b'{"status":"invalid_token"}'
    with pytest.raises(SaslError):
        exchange.evaluate(first_message(TOKEN))
    assert exchange.user is None


def test_a_missing_scope_is_reported() -> None:
    """With Kafka's spelling of the JSON."""
    error = TokenError("missing", status="insufficient_scope", scope="[a, b]")
    assert error.challenge == '{"status":"insufficient_scope", "scope":"[a, b]"}'


def test_tokens_are_not_shown() -> None:
    """Not in what a debugger or a traceback prints either."""
    assert TOKEN not in repr(FirstMessage.parse(first_message(TOKEN)))
