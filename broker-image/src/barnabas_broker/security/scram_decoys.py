"""What an exchange of SCRAM answers for a user that does not exist: a salt, and iterations.

They are in the manner of a user that exists: as many iterations, a salt as long and of the same
characters. And they stay the same on all brokers and over restarts, as those of a user do: they are
derived from the stored credential of the user next to the name on a ring of hashes, so that another
user changes them for few names. Answers do not show which names are users.
"""

import hashlib
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
"""Of a salt where there are no users."""

JAVA_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
"""What the salts of Kafka's own tools consist of (`ScramFormatter.secureRandomString`)."""


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
        self._key: Final = key
        self._ring: Final = sorted(
            (_place(user), user)
            for user, configs in users.items()
            if mechanism.wire_name in configs
        )

    def of(self, name: str) -> Decoy:
        """The decoy of a user that does not exist."""
        model = self._model(name)
        if model is None:
            return Decoy(_drawn(self._key, name, SALT_BYTES), ITERATIONS_MIN)
        salt = _drawn(model.server_key, name, len(model.salt))
        if all(byte in JAVA_DIGITS for byte in model.salt):
            salt = bytes(JAVA_DIGITS[byte % len(JAVA_DIGITS)] for byte in salt)
        return Decoy(salt, max(model.iterations, ITERATIONS_MIN))

    def _model(self, name: str) -> ScramCredential | None:
        if not self._ring:
            return None
        at = bisect(self._ring, (_place(name), "")) % len(self._ring)
        return scram_credential(self.users, self._mechanism, self._ring[at][1])


def _place(user: str) -> bytes:
    return hashlib.sha256(user.encode()).digest()


def _drawn(secret: bytes, name: str, size: int) -> bytes:
    seed = hmac.digest(secret, b"decoy of " + name.encode(), "sha256")
    return hashlib.shake_256(seed).digest(size)
