"""Access to the admin port, and its TLS: a file of bearer tokens, a key store, a trust store.

Without token file and trust store every client may ask. Otherwise one of the two is needed: a token
of the file, or a certificate that an authority of the trust store has signed. A certificate is
asked for and never required, because a kubelet's probes have none.
"""

from __future__ import annotations

import hmac
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from barnabas_broker.security.listener_tls import FileState, file_state
from barnabas_broker.security.resumed_sessions import keeps_many
from barnabas_broker.security.stores import Store, StoreError, load_identity, load_trust
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key

log = logging.getLogger(__name__)

TOKEN_LENGTH_MIN: Final = 16
FILE_BYTES_MAX: Final = 64 << 10
TOKENS_MAX: Final = 100
REFUSALS_LOGGED_EVERY_S: Final = 1.0

SCHEME: Final = "bearer"


@dataclass(frozen=True, slots=True)
class _Access:
    """What was read together."""

    tokens: tuple[bytes, ...]
    context: ssl.SSLContext | None


class AdminAccess:
    """The access to one admin port. `renew` reads changed files again."""

    def __init__(self, settings: BrokerSettings, *, monotonic_s: Callable[[], float]) -> None:
        """Read the files; raises StoreError, in one line."""
        self._settings = settings
        self._monotonic_s = monotonic_s
        self._token_file = _path(settings, keys.BARNABAS_ADMIN_TOKEN_FILE)
        key_store = _path(settings, keys.BARNABAS_ADMIN_SSL_KEYSTORE_LOCATION)
        trust_store = _path(settings, keys.BARNABAS_ADMIN_SSL_TRUSTSTORE_LOCATION)
        if trust_store is not None and key_store is None:
            raise StoreError(
                f"{keys.BARNABAS_ADMIN_SSL_TRUSTSTORE_LOCATION.name} needs "
                f"{keys.BARNABAS_ADMIN_SSL_KEYSTORE_LOCATION.name}: certificates are shown over TLS"
            )
        self._certificates = trust_store is not None
        found = (self._token_file, key_store, trust_store)
        self._paths = [path for path in found if path is not None]
        self._files = self._watched()
        self._read = self._read_all()
        self._logged_at_s = -REFUSALS_LOGGED_EVERY_S
        self._refused = 0

    @property
    def open(self) -> bool:
        """Whether every client may ask everything."""
        return self._token_file is None and not self._certificates

    @property
    def watches(self) -> bool:
        """Whether there are files that `renew` reads."""
        return bool(self._paths)

    @property
    def context(self) -> ssl.SSLContext | None:
        """What to accept the next connection with; None for plain HTTP."""
        return self._read.context

    def allows(self, authorization: str, *, certified: bool) -> bool:
        """Whether a request with this Authorization header may be answered."""
        if self.open or (self._certificates and certified):
            return True
        scheme, _, shown = authorization.strip().partition(" ")
        if scheme.lower() == SCHEME:
            token = shown.strip().encode("latin-1", "replace")
            # All are compared: the time says nothing of which one is right.
            if sum(hmac.compare_digest(token, each) for each in self._read.tokens):
                return True
            self._log_refusal()
        return False

    def renew(self) -> None:
        """Read the files again where one has changed; blocks. A file that is wrong is logged."""
        files = self._watched()
        if files == self._files:
            if self.context is not None and keeps_many(self.context):
                with suppress(StoreError):  # Logged when they changed.
                    self._read = self._read_all()
            return
        self._files = files
        try:
            self._read = self._read_all()
        except StoreError as error:
            log.error("Admin port keeps its earlier certificates and tokens: %s", error)
            return
        log.info("Reloaded the certificates and tokens of the admin port")

    def _watched(self) -> dict[Path, FileState]:
        return {path: file_state(path) for path in self._paths}

    def _read_all(self) -> _Access:
        tokens = () if self._token_file is None else _tokens(self._token_file)
        return _Access(tokens, _context(self._settings))

    def _log_refusal(self) -> None:
        """At most once a second, with how many there were; never what was shown."""
        self._refused += 1
        now_s = self._monotonic_s()
        if now_s - self._logged_at_s >= REFUSALS_LOGGED_EVERY_S:
            log.warning("Admin port refused a wrong bearer token: requests=%d", self._refused)
            self._logged_at_s, self._refused = now_s, 0


def _path(settings: BrokerSettings, key: Key[Any]) -> Path | None:
    return Path(settings[key]) if settings[key] else None


def _tokens(path: Path) -> tuple[bytes, ...]:
    """The tokens of a file; raises StoreError where there is none, or one is too short."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    tokens = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not tokens or len(tokens) > TOKENS_MAX or len(text) > FILE_BYTES_MAX:
        raise StoreError(f"{path}: from 1 to {TOKENS_MAX} tokens are needed, one in a line")
    for number, token in enumerate(tokens, 1):
        if len(token) < TOKEN_LENGTH_MIN:
            raise StoreError(
                f"{path}: token {number} has fewer than {TOKEN_LENGTH_MIN} characters; "
                "make one: openssl rand -hex 32"
            )
        if not all(0x21 <= byte <= 0x7E for byte in token):
            raise StoreError(f"{path}: token {number} is not of printable ASCII without blanks")
    return tokens


def _context(settings: BrokerSettings) -> ssl.SSLContext | None:
    key_store = _path(settings, keys.BARNABAS_ADMIN_SSL_KEYSTORE_LOCATION)
    if key_store is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Tickets would outlive a change of which certificates are trusted; `resumed_sessions`.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    load_identity(
        context,
        Store(
            path=key_store,
            kind=settings[keys.BARNABAS_ADMIN_SSL_KEYSTORE_TYPE],
            password=settings[keys.BARNABAS_ADMIN_SSL_KEYSTORE_PASSWORD],
        ),
    )
    trust_store = _path(settings, keys.BARNABAS_ADMIN_SSL_TRUSTSTORE_LOCATION)
    if trust_store is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        load_trust(
            context,
            Store(
                path=trust_store,
                kind=settings[keys.BARNABAS_ADMIN_SSL_TRUSTSTORE_TYPE],
                password=settings[keys.BARNABAS_ADMIN_SSL_TRUSTSTORE_PASSWORD],
            ),
        )
    return context
