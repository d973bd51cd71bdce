"""Passwords among the settings that a broker has in ZooKeeper: encrypted there, plain in memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from barnabas_broker.security.password_encoder import PasswordEncoder, PasswordError, is_encoded
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings import dynamic
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError

_log = logging.getLogger(__name__)


class StoredPasswords:
    """Encodes and decodes what one broker stores; the secret is one of its start."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._encoder = PasswordEncoder(settings)
        self._known: dict[str, str | PasswordError] = {}
        """By stored text, those of the last look only: deriving a key takes milliseconds."""

    def decoded(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The settings as they are in effect.

        A password that cannot be read is left out and logged, as Kafka does. One that is not
        encrypted counts as it is: tools that write to ZooKeeper leave such ones.
        """
        found: dict[str, str] = {}
        known, self._known = self._known, {}
        for name, text in stored.items():
            if not (_is_password(name) and is_encoded(text)):
                found[name] = text
                continue
            password = known.get(text)
            if password is None:
                password = self._decoded(name, text)
            self._known[text] = password
            if isinstance(password, str):
                found[name] = password
        return found

    def encoded(
        self, settings: Mapping[str, str], before: Mapping[str, str], stored: Mapping[str, str]
    ) -> dict[str, str]:
        """The settings as they are stored: passwords encrypted, those unchanged as they were.

        `before` is what was decoded of `stored`. Raises KafkaError where there is no secret.
        """
        found = dict(settings)
        for name, value in settings.items():
            if not _is_password(name):
                continue
            if value == before.get(name) and is_encoded(stored[name]):
                found[name] = stored[name]
            elif self._encoder.has_secret:
                found[name] = self._encoder.encode(value)
            elif value != before.get(name):
                needed = f"{name}: {keys.PASSWORD_ENCODER_SECRET.name} is not set"
                message = f"{needed}, and passwords are kept in ZooKeeper encrypted only"
                raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        return found

    def _decoded(self, name: str, text: str) -> str | PasswordError:
        try:
            return self._encoder.decode(text)
        except PasswordError as error:
            _log.error("Stored broker config ignored: %s", SettingError(name, None, str(error)))
            return error


def _is_password(name: str) -> bool:
    key = dynamic.find_setting(name)
    return key is not None and key.sensitive
