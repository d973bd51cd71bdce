"""OAUTHBEARER as Apache Kafka answers it: the same messages to both brokers, byte by byte."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas_broker.security.bearer_settings import SIGNED_HANDLERS, UNSECURED_HANDLER
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.server.running import Wire, running_node
from tests.oracle.apache import ApacheKafka, free_port
from tests.oracle.tokens import Signer, first_message, key_set, sound_claims, unsecured

pytestmark = pytest.mark.jvm

MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SIGNERS: Final = {each.key_id: each for each in (Signer(), Signer("es", "ES384"))}
KNOWN, STRANGER = SIGNERS["first"], Signer("mallory")
AUDIENCE, ISSUER = "kafka", "https://issuer"
ACKNOWLEDGED: Final = b"\x01"


@dataclass(frozen=True)
class Sides:
    """Ports of the listeners of both brokers, by listener."""

    ours: dict[str, int]
    theirs: dict[str, int]

    def answers(self, listener: str, *messages: bytes) -> list[Any]:
        """What Apache answers, after our answers were found to be the same."""
        found = [answered(side[listener], messages) for side in (self.ours, self.theirs)]
        assert found[0] == found[1]
        return found[1]


def settings(keys: Path, names: dict[str, int]) -> dict[str, str]:
    """What both brokers are given: a listener of each kind of check."""
    # Apache's broker logs in itself where its login module has options.
    options = 'unsecuredLoginStringClaim_sub="x" unsecuredValidatorRequiredScope="a b"'
    prefix = "listener.name.{}.oauthbearer."
    return {
        "listeners": ",".join(f"{it}://127.0.0.1:{port}" for it, port in names.items()),
        "listener.security.protocol.map": ",".join(
            f"{it}:{'PLAINTEXT' if it == 'PLAINTEXT' else 'SASL_PLAINTEXT'}" for it in names
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        **{
            prefix.format(name) + "sasl.jaas.config": f"{MODULE};"
            for name in ("unsecured", "signed")
        },
        prefix.format("scoped") + "sasl.jaas.config": f"{MODULE} {options};",
        **{
            prefix.format(name) + "sasl.server.callback.handler.class": handler
            for name, handler in {
                "unsecured": UNSECURED_HANDLER,
                "scoped": UNSECURED_HANDLER,
                "signed": SIGNED_HANDLERS[0],
            }.items()
        },
    }


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """An Apache broker and ours."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(key_set(*SIGNERS.values()))
    with ExitStack() as stack:
        kafka = ApacheKafka(heap="384M")
        names = ("SIGNED", "UNSECURED", "SCOPED")
        theirs = {"PLAINTEXT": kafka.port, **{each: free_port() for each in names}}
        kafka.settings |= settings(keys, theirs)
        kafka.settings["connection.failed.authentication.delay.ms"] = "1"
        stack.enter_context(kafka)
        given = settings(keys, dict.fromkeys(theirs, 0))
        given["connection.failed.authentication.delay.ms"] = "1"
        node = stack.enter_context(running_node(tmp_path_factory.mktemp("data"), given))
        yield Sides({each.name: each.port for each in node.listeners}, theirs)


def answered(port: int, messages: tuple[bytes, ...]) -> list[Any]:
    """The answers to messages on a new connection, and whether it is closed behind them."""
    found: list[Any] = []
    with Wire(port) as wire:
        handshake = wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        found.append((handshake.error_code, sorted(handshake.mechanisms)))
        for message in messages:
            wire.send(SaslAuthenticateRequest(auth_bytes=message), 2)
            frame = wire.receive_frame()
            # The session's lifetime differs by the milliseconds between the two.
            found.append(frame[4:-9] if frame else None)
        if frame and frame[5:7] != b"\0\0":
            found.append(wire.closed_by_broker())
    return found


def lifetime_ms(port: int, token: str) -> int:
    """What a client is told of its session."""
    with Wire(port) as wire:
        wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        found = wire.ask(SaslAuthenticateRequest(auth_bytes=first_message(token)), 2)
        assert (found.error_code, found.auth_bytes) == (0, b"")
        reported: int = found.session_lifetime_ms
        return reported


def sound(**claims: Any) -> str:
    """A token with what the listener expects."""
    return KNOWN.token(**{"aud": AUDIENCE, "iss": ISSUER, **claims})


NOW: Final = int(time.time())
SIGNED: Final[dict[str, str]] = {
    "sound": sound(),
    "another algorithm of the key": Signer("first").token(aud=AUDIENCE, iss=ISSUER),
    "ES384": SIGNERS["es"].token(aud=AUDIENCE, iss=ISSUER),
    "one of several audiences": sound(aud=["x", AUDIENCE]),
    "another audience": sound(aud="x"),
    "no audience": sound(aud=None),
    "another issuer": sound(iss="x"),
    "no issuer": sound(iss=None),
    "no exp": sound(exp=None),
    "no iat": sound(iat=None),
    "no sub": sound(sub=None),
    "blank sub": sound(sub=" "),
    "expired": sound(exp=NOW - 1000),
    "not yet": sound(nbf=NOW + 5000),
    "exp that is text": sound(exp="9999999999"),
    "scopes": sound(scope=["a", "b"]),
    "a scope twice": sound(scope=["a", "a"]),
    "an empty scope": sound(scope=""),
    "no text for jti": sound(jti=7),
    "another key": STRANGER.token(aud=AUDIENCE, iss=ISSUER),
    "another key by that name": STRANGER.token(aud=AUDIENCE, iss=ISSUER, header={"kid": "first"}),
    "another key's name": sound(header={"kid": "es"}),
    "unsecured": unsecured({**sound_claims(), "aud": AUDIENCE, "iss": ISSUER}),
    "a critical extension": KNOWN.token(aud=AUDIENCE, iss=ISSUER, header={"crit": ["x"], "x": 1}),
    "two parts": "a.b",
    "four parts": "a.b.c.d",
    "no JSON": "AAAA.AAAA.AAAA",
}


@pytest.mark.parametrize("name", SIGNED)
def test_signed_tokens(sides: Sides, name: str) -> None:
    """Accepted or refused alike, and refused in the same words."""
    token = SIGNED[name]
    accepted = name in (
        "sound", "another algorithm of the key", "ES384", "one of several audiences", "scopes"
    )  # fmt: skip
    messages = [first_message(token)] if accepted else [first_message(token), ACKNOWLEDGED]
    answers = sides.answers("SIGNED", *messages)
    assert accepted or answers[-1] is True  # It is closed.


UNSECURED: Final[dict[str, str]] = {
    "sound": unsecured(sound_claims()),
    "no iat": unsecured({"sub": "alice", "exp": NOW + 1000}),
    "fractions": unsecured({"sub": "alice", "exp": NOW + 1000.5}),
    "no exp": unsecured({"sub": "alice", "iat": NOW}),
    "no sub": unsecured({"iat": NOW, "exp": NOW + 1000}),
    "expired": unsecured({"sub": "alice", "exp": NOW - 5}),
    "of the future": unsecured({"sub": "alice", "iat": NOW + 4000, "exp": NOW + 5000}),
    "expires before it was issued": unsecured({"sub": "alice", "iat": NOW - 5, "exp": NOW - 9}),
    "signed": KNOWN.token(),
    "a signature": unsecured(sound_claims(), signature="AAAA"),
    "two parts": "a.b",
    "no JSON": "AAAA.AAAA.",
}


@pytest.mark.parametrize("name", UNSECURED)
def test_unsecured_tokens(sides: Sides, name: str) -> None:
    """Kafka's handler for development."""
    accepted = name in ("sound", "no iat", "fractions")
    messages = [first_message(UNSECURED[name])] + ([] if accepted else [ACKNOWLEDGED])
    sides.answers("UNSECURED", *messages)


@pytest.mark.parametrize("scope", [None, "a", "a b", ["b", "a"], ["a"], []])
def test_required_scopes(sides: Sides, scope: Any) -> None:
    """What is missing is told as `insufficient_scope`."""
    claims = sound_claims() if scope is None else {**sound_claims(), "scope": scope}
    messages = [first_message(unsecured(claims))]
    sides.answers("SCOPED", *messages if scope == ["b", "a"] else [*messages, ACKNOWLEDGED])


SOUND: Final = unsecured(sound_claims())
MESSAGES: Final[dict[str, bytes]] = {
    "authorization id": first_message(SOUND, authzid="alice"),
    "another authorization id": first_message(SOUND, authzid="bob"),
    "extensions": first_message(SOUND, extensions="traceId=a b\x01logicalCluster=c\x01"),
    "an extension with digits": first_message(SOUND, extensions="trace1=a\x01"),
    "an empty extension": first_message(SOUND, extensions="trace=\x01"),
    "nothing": b"",
    "only the separator": ACKNOWLEDGED,
    "no auth": b"n,,\x01other=x\x01\x01",
    "no token": b"n,,\x01auth=Bearer\x01\x01",
    "characters of other tokens": b"n,,\x01auth=Bearer a/b+~=\x01\x01",
    "characters of none": b"n,,\x01auth=Bearer a,b\x01\x01",
    "any case": f"n,,\x01auth=bEARER {SOUND}\x01\x01".encode(),
    "auth twice": f"n,,\x01auth=Bearer x\x01auth=Bearer {SOUND}\x01\x01".encode(),
    "channel binding": f"y,,\x01auth=Bearer {SOUND}\x01\x01".encode(),
    "no last separator": f"n,,\x01auth=Bearer {SOUND}\x01".encode(),
    "PLAIN": b"\0alice\0secret",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_first_messages(sides: Sides, name: str) -> None:
    """RFC 7628 and the extensions of KIP-342."""
    sides.answers("UNSECURED", MESSAGES[name])


def test_sessions_last_as_long_as_tokens(sides: Sides) -> None:
    """Where the listener sets no limit, too."""
    token = sound(exp=NOW + 3000)
    for side in (sides.ours, sides.theirs):
        left_ms = (NOW + 3000 - time.time()) * 1000
        assert 0 < left_ms - lifetime_ms(side["SIGNED"], token) + 60_000 <= 120_000
