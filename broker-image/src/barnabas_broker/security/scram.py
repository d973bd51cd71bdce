"""SCRAM on the side of the broker (RFC 5802, RFC 7677), as Kafka's ScramSaslServer.

A credential never holds the password: it holds what proves that a client knows it, and what proves
to the client that the broker does. Its text is the one that Kafka keeps in `/config/users/<user>`.

An exchange with a user that does not exist is carried on with a decoy (`scram_decoys`), and fails
in its last step like one with a wrong password: clients learn of no user whether it exists. Kafka
fails the first step.

With the extension `tokenauth=true` the user name is the id of a delegation token (KIP-48), and the
principal is its owner. Channel binding and other extensions are not offered, as in Kafka.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol

from barnabas_broker.security.sasl import SaslError

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""Kafka's bounds (`ScramMechanism`, `ScramCredentialUtils`)."""

NONCE_BYTES: Final = 18
FIRST_TOKEN: Final = re.compile(
    rb"n,(a=(?P<authzid>[^,]*))?,"
    rb"(?P<bare>n=(?P<name>(?:[^=,\x00]|=2C|=3D)+),r=(?P<nonce>[!-+\--~]+)(?P<extensions>(?:,[^,]+)*))"
)
FINAL_TOKEN: Final = re.compile(
    rb"(?P<without_proof>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[^,]+)*?)"
    rb",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class ScramMechanism(IntEnum):
    """The mechanisms by the numbers that AlterUserScramCredentials gives them (KIP-554)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def wire_name(self) -> str:
        """The name in SaslHandshake and in settings, such as SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The hash function by hashlib's name."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @classmethod
    def of(cls, name: str) -> "ScramMechanism | None":
        """The mechanism of a name on the wire, None for another."""
        return next((each for each in cls if each.wire_name == name), None)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What is stored of a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def from_salted_password(
        cls, mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
    ) -> "ScramCredential":
        """The credential of a password that was salted by the client that sets it (KIP-554)."""
        client_key = hmac.digest(salted, b"Client Key", mechanism.hash_name)
        return cls(
            salt=salt,
            stored_key=hashlib.new(mechanism.hash_name, client_key).digest(),
            server_key=hmac.digest(salted, b"Server Key", mechanism.hash_name),
            iterations=iterations,
        )

    @classmethod
    def parse(cls, text: str) -> "ScramCredential":
        """Read `salt=…,stored_key=…,server_key=…,iterations=N`; raises ValueError."""
        pairs = dict(part.partition("=")[::2] for part in text.split(","))
        if set(pairs) != {"salt", "stored_key", "server_key", "iterations"}:
            raise ValueError("SCRAM credential without salt, stored_key, server_key or iterations")
        try:
            return cls(
                salt=b64decode(pairs["salt"], validate=True),
                stored_key=b64decode(pairs["stored_key"], validate=True),
                server_key=b64decode(pairs["server_key"], validate=True),
                iterations=int(pairs["iterations"]),
            )
        except Base64Error as error:
            raise ValueError("SCRAM credential with malformed base64") from error

    def format(self) -> str:
        """The text that `parse` reads (Kafka's ScramCredentialUtils.credentialToString)."""
        salt, stored, server = (
            b64encode(each).decode() for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"


FindCredential = Callable[[str], ScramCredential | None]
FindDecoy = Callable[[str, bool], tuple[bytes, int]]
"""Salt and iterations for a user that does not exist, or for a delegation token, which is other."""


class TokenLogin(Protocol):
    """The credential and the principal of a client that names a delegation token."""

    @property
    def owner(self) -> str:
        """The user that it is then."""
        ...

    @property
    def credential(self) -> ScramCredential:
        """Of the token's HMAC."""
        ...

    @property
    def expires_at_ms(self) -> int:
        """When the token expires."""
        ...


FindToken = Callable[[str], TokenLogin | None]
"""By the token's id; None for one that is not good."""


class ScramServer:
    """One exchange: client-first → server-first, client-final → server-final."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: FindCredential,
        *,
        nonce: str,
        decoy: FindDecoy,
        find_token: FindToken = lambda _: None,
    ) -> None:
        """`nonce` must not have been used before."""
        self._hash = mechanism.hash_name
        self._find = find
        self._find_token = find_token
        self._login: TokenLogin | None = None
        self._nonce = nonce.encode()
        self._decoy = decoy
        self._credential: ScramCredential | None = None
        self._sent: tuple[bytes, bytes, bytes] | None = None  # Bare first, server-first, nonce.
        self.user: str | None = None
        self.expires_at_ms: int | None = None
        self.token_authenticated = False

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a token of the client; raises SaslError. `user` is set at the end."""
        if self.user is not None:
            raise SaslError("token after the end of the exchange")
        return self._first(token) if self._sent is None else self._final(token, *self._sent)

    def _first(self, token: bytes) -> bytes:
        match = FIRST_TOKEN.fullmatch(token)
        if match is None:
            raise SaslError("malformed client-first message")
        try:
            self._name = match["name"].decode().replace("=2C", ",").replace("=3D", "=")
            authzid = (match["authzid"] or b"").decode()
        except UnicodeDecodeError:
            raise SaslError("the user name is not UTF-8") from None
        if authzid and authzid.replace("=2C", ",").replace("=3D", "=") != self._name:
            raise SaslError("authorization id that is not the user name")
        if match["extensions"].startswith(b",m="):
            raise SaslError("mandatory extension that is not supported")
        of_token = b"tokenauth=true" in match["extensions"].lower().split(b",")
        credential = self._credential_of(of_token=of_token)
        if credential is not None and credential.iterations < ITERATIONS_MIN:
            credential = None
        self._credential = credential
        nonce = match["nonce"] + self._nonce
        if credential is None:
            salt, iterations = self._decoy(self._name, of_token)
        else:
            salt, iterations = credential.salt, credential.iterations
        answer = b"r=%b,s=%b,i=%d" % (nonce, b64encode(salt), iterations)
        self._sent = (match["bare"], answer, nonce)
        return answer

    def _final(self, token: bytes, bare: bytes, server_first: bytes, nonce: bytes) -> bytes:
        match = FINAL_TOKEN.fullmatch(token)
        if match is None:
            raise SaslError("malformed client-final message")
        if not hmac.compare_digest(match["nonce"], nonce):
            raise SaslError("the nonce is not the one of this exchange")
        try:
            binding = b64decode(match["binding"], validate=True)
            proof = b64decode(match["proof"], validate=True)
        except Base64Error:
            raise SaslError("malformed base64 in client-final message") from None
        if not binding.startswith(b"n,"):  # The header of the first message: no channel binding.
            raise SaslError("channel binding is not supported")
        message = b",".join((bare, server_first, match["without_proof"]))
        credential = self._credential
        if credential is None or len(proof) != len(credential.stored_key):
            raise SaslError("unknown user or wrong password")
        signature = hmac.digest(credential.stored_key, message, self._hash)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise SaslError("unknown user or wrong password")
        login = self._login
        self.user = self._name if login is None else login.owner
        self.expires_at_ms = None if login is None else login.expires_at_ms
        self.token_authenticated = login is not None
        return b"v=" + b64encode(hmac.digest(credential.server_key, message, self._hash))

    def _credential_of(self, *, of_token: bool) -> ScramCredential | None:
        if not of_token:
            return self._find(self._name)
        self._login = self._find_token(self._name)
        return None if self._login is None else self._login.credential


def scram_credential(
    users: Mapping[str, Mapping[str, str]], mechanism: ScramMechanism, user: str
) -> ScramCredential | None:
    """A user's credential among the settings of users; None for none, or one that is malformed."""
    text = users.get(user, {}).get(mechanism.wire_name)
    if text is None:
        return None
    try:
        return ScramCredential.parse(text)
    except ValueError:
        return None
