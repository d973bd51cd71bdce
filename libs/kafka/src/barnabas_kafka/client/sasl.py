"""SASL mechanisms of the client: PLAIN, SCRAM and OAUTHBEARER as exchanges of tokens, without I/O.

A mechanism holds the credentials; `start` begins one exchange with a fresh nonce. An exchange gives
its first token and answers each challenge; it ends by `done`, or raises AuthenticationError. The
client authenticates the server too where the mechanism can: SCRAM checks the nonce and the server's
signature (RFC 5802), and an exchange that has not checked them is not `done`, whatever the broker
says. As in Kafka's ScramFormatter, names and passwords are UTF-8 without SASLprep.
"""

import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from barnabas_kafka.client.errors import AuthenticationError

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 200_000
"""A server names the iterations; more would let it occupy the client. Kafka allows 16384."""

_SEPARATOR: Final = b"\x01"
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

ScramMechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
TokenProvider = Callable[[], str | Awaitable[str]]


class Exchange(Protocol):
    """One authentication, from the first token to the last."""

    @property
    def done(self) -> bool:
        """Whether the client has nothing left to send or to check."""
        ...

    def first(self) -> bytes:
        """The token that the client sends first."""
        ...

    def answer(self, challenge: bytes) -> bytes | None:
        """The next token, None where there is none; raises AuthenticationError."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """SASL/PLAIN: the password travels as it is, so use it over TLS only."""

    username: str
    password: str = field(repr=False)

    @property
    def mechanism(self) -> str:
        """The name on the wire."""
        return "PLAIN"

    def start(self, nonce: str) -> Exchange:
        """One exchange; PLAIN needs no nonce."""
        if "\0" in self.username + self.password:
            raise AuthenticationError("PLAIN credentials cannot contain a null character")
        return _OneToken(b"\0".join((b"", self.username.encode(), self.password.encode())))


@dataclass(frozen=True, slots=True)
class Scram:
    """SASL/SCRAM with SHA-256 or SHA-512.

    With `delegation_token` the user name is the id of a token, and the password its HMAC in base64.
    """

    username: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = "SCRAM-SHA-512"
    delegation_token: bool = False

    def start(self, nonce: str) -> Exchange:
        """One exchange with this nonce, which must not have been used before."""
        return _ScramExchange(self, nonce)


@dataclass(frozen=True, slots=True)
class OAuthBearer:
    """SASL/OAUTHBEARER: `token_provider` is called before every connection and gives a token.

    It may be a coroutine function. An ordinary function runs in a thread; give it a time limit.
    """

    token_provider: TokenProvider = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """The name on the wire."""
        return "OAUTHBEARER"

    def start_with(self, token: str) -> Exchange:
        """One exchange with a token that the provider gave."""
        pairs = {"auth": f"Bearer {token}", **self.extensions}
        if any("\x01" in name + value for name, value in pairs.items()):
            raise AuthenticationError("OAUTHBEARER values cannot contain the separator \\x01")
        if "auth" in self.extensions:
            raise AuthenticationError("OAUTHBEARER extensions cannot be called 'auth'")
        text = "".join(f"{name}={value}\x01" for name, value in pairs.items())
        return _Bearer(b"n,," + _SEPARATOR + text.encode() + _SEPARATOR)


Mechanism = Plain | Scram | OAuthBearer


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """What AlterUserScramCredentials stores in place of the password (RFC 5802, Hi)."""
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


class _OneToken:
    """Everything is in the first token; the broker's answer says whether it was accepted."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        self._answered = False

    @property
    def done(self) -> bool:
        return self._answered

    def first(self) -> bytes:
        return self._token

    def answer(self, challenge: bytes) -> bytes | None:
        self._answered = True
        return None


class _Bearer(_OneToken):
    """An empty challenge is success; else it is a JSON object that says why (RFC 7628, 3.2.3)."""

    def __init__(self, token: bytes) -> None:
        super().__init__(token)
        self._rejected = False

    @property
    def done(self) -> bool:
        return super().done and not self._rejected

    def answer(self, challenge: bytes) -> bytes | None:
        super().answer(challenge)
        if not challenge:
            return None
        self._rejected = True
        try:
            reason = json.loads(challenge)["status"]
        except (ValueError, KeyError, TypeError):
            reason = "no reason given"
        raise AuthenticationError(f"OAUTHBEARER token rejected: {reason}")


class _ScramExchange:
    """Client-first, server-first, client-final, server-final; `_step` counts what was received."""

    def __init__(self, credentials: Scram, nonce: str) -> None:
        self._credentials = credentials
        self._hash = _HASHES[credentials.mechanism]
        self._nonce = nonce
        name = credentials.username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if credentials.delegation_token else ""
        self._first_bare = f"n={name},r={nonce}{extension}"
        self._signature = b""
        self._step = 0

    @property
    def done(self) -> bool:
        return self._step == 2

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        try:
            text = challenge.decode()
            attributes = dict(part.split("=", 1) for part in text.split(","))
            if self._step == 0:
                return self._final(text, attributes)
            if self._step == 1:
                self._verify(attributes)
                return None
        except (ValueError, KeyError) as error:
            raise AuthenticationError(f"malformed SCRAM challenge: {error}") from None
        raise AuthenticationError("SCRAM challenge after the end of the exchange")

    def _final(self, server_first: str, attributes: Mapping[str, str]) -> bytes:
        if "m" in attributes:
            raise AuthenticationError("the server requires a SCRAM extension that is not supported")
        nonce, iterations = attributes["r"], int(attributes["i"])
        salt = b64decode(attributes["s"], validate=True)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationError("the server's SCRAM nonce does not continue the client's")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise AuthenticationError(
                f"the server asks for {iterations} SCRAM iterations, "
                f"allowed are {ITERATIONS_MIN} to {ITERATIONS_MAX}"
            )
        mechanism, password = self._credentials.mechanism, self._credentials.password
        salted = salted_password(mechanism, password, salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"  # biws: "n,," in base64, there is no channel binding.
        message = f"{self._first_bare},{server_first},{without_proof}".encode()
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = self._mac(stored_key, message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = self._mac(self._mac(salted, b"Server Key"), message)
        self._step = 1
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _verify(self, attributes: Mapping[str, str]) -> None:
        if "e" in attributes:
            raise AuthenticationError(f"SCRAM authentication failed: {attributes['e']}")
        received = b64decode(attributes["v"], validate=True)
        if not hmac.compare_digest(received, self._signature):
            raise AuthenticationError("the server's SCRAM signature is wrong: it is not the broker")
        self._step = 2

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)
