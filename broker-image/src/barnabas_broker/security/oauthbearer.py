"""OAUTHBEARER on the side of the broker (RFC 7628, KIP-255), as Kafka's OAuthBearerSaslServer.

The client's first message is a GS2 header and pairs, each ended by a byte 0x01:

    n,[a=<authorization id>],\\x01auth=Bearer <token>\\x01[<extension>=<value>\\x01…]\\x01

A token that is refused is answered by a JSON object, as RFC 7628 has it, and the client ends the
exchange with a single byte 0x01. Extensions (KIP-342) are accepted, and nothing reads them.

What is said of a refused token never has any of it: a client may have sent a sound one elsewhere.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from barnabas_broker.security.sasl import SaslError

TOKEN_BYTES_MAX: Final = 65_536
"""A longer token is refused before anything of it is decoded."""

_SEPARATOR: Final = b"\x01"
_FIRST: Final = re.compile(
    rb"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,"
    rb"\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(rb"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


@dataclass(frozen=True, slots=True)
class BearerToken:
    """What a token that was found sound says."""

    user: str
    expires_at_ms: int


class TokenError(ValueError):
    """A token is refused; the text is for the log. The client gets `status` and `scope`."""

    def __init__(self, reason: str, *, status: str = "invalid_token", scope: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope

    @property
    def challenge(self) -> str:
        """The JSON object that the client is sent, in Kafka's spelling."""
        scope = f', "scope":{json.dumps(self.scope)}' if self.scope else ""
        return f'{{"status":{json.dumps(self.status)}{scope}}}'


Validate = Callable[[str], BearerToken]
"""The content of a token as it came; raises TokenError."""


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """The client's first message."""

    authorization_id: str
    token: str = field(repr=False)

    @classmethod
    def parse(cls, message: bytes) -> "FirstMessage":
        """Read it; raises SaslError."""
        match = _FIRST.fullmatch(message)
        if match is None:
            raise SaslError("malformed OAUTHBEARER client first message")
        pairs = dict(pair.split(b"=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
        if b"auth" not in pairs:
            raise SaslError("OAUTHBEARER client first message without auth")
        auth = _AUTH.fullmatch(pairs[b"auth"])
        if auth is None or auth["scheme"].lower() != b"bearer":
            raise SaslError("OAUTHBEARER client first message whose auth is no bearer token")
        if len(auth["token"]) > TOKEN_BYTES_MAX:
            raise SaslError(f"OAUTHBEARER token of more than {TOKEN_BYTES_MAX} bytes")
        return cls((match["authzid"] or b"").decode("ascii"), auth["token"].decode("ascii"))


class OAuthBearerServer:
    """One exchange: a token, and after a token that is refused the client's acknowledgement."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refusal: TokenError | None = None
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a message of the client; raises SaslError."""
        if self.user is not None:
            raise SaslError("token after the end of the exchange")
        refusal = self._refusal
        if refusal is not None:
            # Kafka takes another token here. One attempt a connection is enough.
            acknowledged = token == _SEPARATOR
            raise SaslError(
                f"OAUTHBEARER token refused: {refusal}",
                client_message=refusal.challenge if acknowledged else None,
            )
        first = FirstMessage.parse(token)
        try:
            found = self._validate(first.token)
        except TokenError as error:
            self._refusal = error
            return error.challenge.encode()
        if first.authorization_id and first.authorization_id != found.user:
            reason = (
                "Authentication failed: Client requested an authorization id "
                f"({first.authorization_id}) that is different from the token's principal name "
                f"({found.user})"
            )
            raise SaslError("authorization id that is not the token's", client_message=reason)
        self.user = found.user
        self.expires_at_ms = found.expires_at_ms
        return b""
