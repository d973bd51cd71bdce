"""SASL on the side of the broker: what a mechanism is, and PLAIN (RFC 4616)."""

import hmac
from collections.abc import Mapping
from typing import Final, Protocol

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""What a listener can offer. GSSAPI is refused by name at the start."""


class SaslError(Exception):
    """An exchange failed. The text is for the broker's log, `client_message` for the client.

    Without a `client_message` the client learns only that its credentials are not accepted.
    Kafka's PLAIN says more.
    """

    def __init__(self, reason: str, *, client_message: str | None = None) -> None:
        super().__init__(reason)
        self.client_message = client_message


class SaslServer(Protocol):
    """One authentication, from the first token to the last."""

    @property
    def user(self) -> str | None:
        """The authenticated user, None before the exchange has succeeded."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """When the credentials of the user expire, None for never."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """Whether they are a delegation token."""
        ...

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a token of the client; raises SaslError."""
        ...


class PlainServer:
    """One exchange of PLAIN: everything is in the first token (Kafka's PlainSaslServer)."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False

    def evaluate(self, token: bytes) -> bytes:
        """The empty answer to `authzid NUL user NUL password`; raises SaslError."""
        if self.user is not None:
            raise SaslError("token after the end of the exchange")
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise SaslError("the token is not UTF-8") from None
        if len(parts) != 3:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise SaslError(text, client_message=text)
        authzid, user, password = parts
        if not user:
            raise _failed("username not specified")
        if not password:
            raise _failed("password not specified")
        expected = self._passwords.get(user)
        # The same work whether the user exists or not.
        matches = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not matches:
            raise _failed("Invalid username or password")
        if authzid and authzid != user:
            raise _failed("Client requested an authorization id that is different from username")
        self.user = user
        return b""


def _failed(reason: str) -> SaslError:
    text = f"Authentication failed: {reason}"
    return SaslError(text, client_message=text)
