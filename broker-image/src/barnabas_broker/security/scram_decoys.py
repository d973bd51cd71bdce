"""What an exchange of SCRAM answers for a user that does not exist: a salt, and iterations.

They are in the manner of a user that exists: as many iterations, a salt of the same form. And they
stay the same on all brokers and over restarts, as those of a user do: they are derived from stored
credentials. The model of a decoy is the user next to the name on a ring, so that another user
changes few decoys. Answers do not show which names are users.

Where a name is on the ring depends on credentials of two users. Were it known to clients, they
would ask for names on both sides of one, and see by their iterations whether a user is there; were
it known to one user, that user would know decoys from users.
"""

import hashlib
import heapq
import hmac
from bisect import bisect
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas_broker.security.scram import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    scram_credential,
)

SALT_BYTES: Final = 20
"""Of a salt where there are no users, and of a delegation token."""

USERS_OF_SECRET: Final = 2
"""Of how many users the credentials place all names."""

JAVA_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
JAVA_SALT_BITS: Final = 130
JAVA_SALT_LENGTHS: Final = range(24, 27)
"""The salts of Kafka's own tools: a number of so many bits in these digits, mostly so long
(`ScramFormatter.secureRandomString`)."""


class Decoy(NamedTuple):
    """The salt and iterations in the response for an unknown user."""

    salt: bytes
    iterations: int


class Decoys:
    """The decoys of one mechanism among these users, whose settings they are made of."""

    def __init__(
        self, users: Mapping[str, Mapping[str, str]], mechanism: ScramMechanism, *, key: bytes
    ) -> None:
        """`key` is a secret of this process, for as long as there are no users."""
        self.users: Final = users
        self._mechanism: Final = mechanism
        wire_name = mechanism.wire_name
        credentials = {
            user: configs[wire_name] for user, configs in users.items() if wire_name in configs
        }
        self._key: Final = _secret_of(credentials) if credentials else key
        self._ring: Final = sorted((self._place(user), user) for user in credentials)

    def of(self, name: str) -> Decoy:
        """The decoy of a user that does not exist."""
        model = self._model(name)
        if model is None:
            return random_decoy(self._key, name)
        salt = _salt_like(model.salt, self._key + model.server_key, name)
        return Decoy(salt, max(model.iterations, ITERATIONS_MIN))

    def _model(self, name: str) -> ScramCredential | None:
        if not self._ring:
            return None
        at = bisect(self._ring, (self._place(name), "")) % len(self._ring)
        return scram_credential(self.users, self._mechanism, self._ring[at][1])

    def _place(self, name: str) -> bytes:
        return hmac.digest(self._key, name.encode(), "sha256")


def random_decoy(key: bytes, name: str) -> Decoy:
    """A decoy in the manner of no user, but of this broker's delegation tokens."""
    return Decoy(_drawn(key, name, SALT_BYTES), ITERATIONS_MIN)


def _secret_of(credentials: Mapping[str, str]) -> bytes:
    """A secret that no user knows alone, and that another user seldom changes."""
    first = heapq.nsmallest(USERS_OF_SECRET, credentials, key=_digest)
    return _digest("\n".join(credentials[user] for user in first))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _salt_like(salt: bytes, secret: bytes, name: str) -> bytes:
    drawn = _drawn(secret, name, len(salt))
    if not all(byte in JAVA_DIGITS for byte in salt):
        return drawn
    if len(salt) not in JAVA_SALT_LENGTHS:
        return bytes(JAVA_DIGITS[byte % len(JAVA_DIGITS)] for byte in drawn)
    return _java_text(int.from_bytes(drawn, "big") % 2**JAVA_SALT_BITS)


def _java_text(number: int) -> bytes:
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(JAVA_DIGITS))
        digits.append(JAVA_DIGITS[digit])
    digits.reverse()
    return bytes(digits)


def _drawn(secret: bytes, name: str, size: int) -> bytes:
    seed = hmac.digest(secret, b"decoy of " + name.encode(), "sha256")
    return hashlib.shake_256(seed).digest(size)
