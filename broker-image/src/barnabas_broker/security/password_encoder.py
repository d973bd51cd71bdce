"""Encrypts passwords that are changed at run time before they are kept in ZooKeeper, as Kafka does.

Kafka's format is one line of `name:value`, with commas between: how the key is derived from
`password.encoder.secret`, how the password is encrypted with it, and the two in Base64. A value
says all that is needed to read it but the secret, so those of an Apache broker are read here and
the reverse.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Mapping
from typing import Final

from barnabas_broker.invariants import violated
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.keys.security import (
    CIPHER_KEY_BITS,
    KEY_DERIVATIONS,
    PASSWORD_CIPHERS,
    PASSWORD_ITERATIONS_MAX,
)

DERIVATIONS: Final[Mapping[str, str]] = {
    name: name.removeprefix("PBKDF2WithHmac").lower() for name in KEY_DERIVATIONS
}
"""By Java's names; the first is Kafka's default."""
SALT_BYTES: Final = 256
_BLOCK_BITS: Final = 128
_BLOCK_BYTES: Final = _BLOCK_BITS // 8


class PasswordError(ValueError):
    """A stored password cannot be read; the message is one line without anything of it."""


def is_encoded(text: str) -> bool:
    """Whether a stored value has this form; one that a person wrote into a znode may not."""
    return "encryptedPassword:" in text


class PasswordEncoder:
    """Encodes with the secret of the settings; reads what that or the secret before encoded."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._secret = settings[keys.PASSWORD_ENCODER_SECRET]
        self._old_secret = settings[keys.PASSWORD_ENCODER_OLD_SECRET]
        asked = settings[keys.PASSWORD_ENCODER_KEYFACTORY_ALGORITHM]
        self._derivation = asked or next(iter(DERIVATIONS))
        self._cipher = settings[keys.PASSWORD_ENCODER_CIPHER_ALGORITHM]
        self._key_bits = settings[keys.PASSWORD_ENCODER_KEY_LENGTH]
        self._iterations = settings[keys.PASSWORD_ENCODER_ITERATIONS]

    @property
    def has_secret(self) -> bool:
        """Whether it can encode."""
        return self._secret is not None

    def encode(self, password: str) -> str:
        """The line to store; needs a secret."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # Late: slow.
        from cryptography.hazmat.primitives.padding import PKCS7

        assert self._secret is not None, violated("passwords are encoded with a secret alone")
        salt, start = os.urandom(SALT_BYTES), os.urandom(_BLOCK_BYTES)
        key = _key(self._secret, self._derivation, salt, self._iterations, self._key_bits)
        padder = PKCS7(_BLOCK_BITS).padder()
        padded = padder.update(password.encode()) + padder.finalize()
        cipher = Cipher(algorithms.AES(key), modes.CBC(start)).encryptor()
        encrypted = cipher.update(padded) + cipher.finalize()
        fields = {
            "keyFactoryAlgorithm": self._derivation,
            "cipherAlgorithm": self._cipher,
            "keyLength": str(self._key_bits),
            "salt": base64.b64encode(salt).decode(),
            "iterations": str(self._iterations),
            "encryptedPassword": base64.b64encode(encrypted).decode(),
            "passwordLength": str(_java_length(password)),
            "initializationVector": base64.b64encode(start).decode(),
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """The password of a stored line. Raises PasswordError."""
        secrets = [it for it in (self._secret, self._old_secret) if it is not None]
        if not secrets:
            raise PasswordError(f"it is encrypted, and {keys.PASSWORD_ENCODER_SECRET.name} not set")
        fields = dict(part.strip().partition(":")[::2] for part in text.split(","))
        try:
            found = [_decoded(fields, secret) for secret in secrets]
        except (KeyError, binascii.Error, ValueError) as error:
            reason = error if isinstance(error, PasswordError) else "it is malformed"
            raise PasswordError(str(reason)) from None
        for password in found:
            if password is not None:
                return password
        raise PasswordError(f"{keys.PASSWORD_ENCODER_SECRET.name} does not decrypt it")


def _decoded(fields: Mapping[str, str], secret: str) -> str | None:
    """The password, None where it was another secret that encrypted it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.padding import PKCS7

    derivation, cipher = fields["keyFactoryAlgorithm"], fields["cipherAlgorithm"]
    iterations, key_bits = int(fields["iterations"]), int(fields["keyLength"])
    if (
        derivation not in DERIVATIONS
        or cipher not in PASSWORD_CIPHERS
        or key_bits not in CIPHER_KEY_BITS
    ):
        raise PasswordError(f"{derivation} with {cipher} and {key_bits} bits is not offered")
    if not 0 < iterations <= PASSWORD_ITERATIONS_MAX:
        raise PasswordError(f"it is derived by more than {PASSWORD_ITERATIONS_MAX} rounds")
    salt, start, encrypted = (
        base64.b64decode(fields[name], validate=True)
        for name in ("salt", "initializationVector", "encryptedPassword")
    )
    if len(start) != _BLOCK_BYTES or not encrypted or len(encrypted) % _BLOCK_BYTES:
        raise PasswordError("it is malformed")
    key = _key(secret, derivation, salt, iterations, key_bits)
    decryptor = Cipher(algorithms.AES(key), modes.CBC(start)).decryptor()
    unpadder = PKCS7(_BLOCK_BITS).unpadder()
    padded = decryptor.update(encrypted) + decryptor.finalize()
    try:
        password = (unpadder.update(padded) + unpadder.finalize()).decode()
    except ValueError:  # Padding or characters that no password has.
        return None
    return password if _java_length(password) == int(fields["passwordLength"]) else None


def _key(secret: str, derivation: str, salt: bytes, iterations: int, bits: int) -> bytes:
    digest = DERIVATIONS[derivation]
    return hashlib.pbkdf2_hmac(digest, secret.encode(), salt, iterations, bits // 8)


def _java_length(text: str) -> int:
    """How long Java finds it: in units of UTF-16."""
    return len(text.encode("utf-16-le")) // 2
