"""The TLS of one listener: from its `ssl.*` settings to a context, renewed while it serves.

Key and trust stores are PEM or PKCS#12 files, or PEM in the settings themselves (KIP-651).
Connections keep the context that they were accepted with, so a renewal ends none. A broker
connects to others with the stores of the listener through which it reaches them.
"""

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from barnabas_broker.security.ssl_principals import MappingRule, parse_rules
from barnabas_broker.security.stores import (
    PEM,
    Store,
    load_identity,
    load_pem_identity,
    load_pem_trust,
    load_trust,
    named_by_ending,
)
from barnabas_broker.security.tls_alerts import AlertingContext
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key, SettingError

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
#: Java's names of the ciphers of TLS 1.2 that are still good, and OpenSSL's
CIPHERS: Final = {
    f"TLS_{exchange}_WITH_{java}": f"{exchange.replace('_', '-')}-{openssl}"
    for exchange in ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA")
    for java, openssl in (
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
CIPHERS_OF_1_3: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)
"""Always offered with TLS 1.3: OpenSSL's interface in Python does not choose among them."""

HTTPS: Final = "https"
FILES: Final = (keys.SSL_KEYSTORE_LOCATION, keys.SSL_TRUSTSTORE_LOCATION)
FileState = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """What a listener's connections are accepted with."""

    context: ssl.SSLContext
    rules: tuple[MappingRule, ...]


def listener_tls(settings: BrokerSettings, listener: str) -> ListenerTls:
    """Read the settings and files of a listener; blocks.

    Raises SettingError with the listener's own name of the setting, or StoreError.
    """
    of = _Of(settings, listener)
    context = _prepared(AlertingContext(ssl.PROTOCOL_TLS_SERVER), of)
    # Tickets would outlive a change of what a client's certificate must be; `resumed_sessions`.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.verify_mode = CLIENT_AUTH[of(keys.SSL_CLIENT_AUTH)]
    if context.verify_mode is not ssl.CERT_NONE and not _trust(context, of):
        raise of.error(
            keys.SSL_TRUSTSTORE_LOCATION, "client certificates need a trust store to be checked by"
        )
    try:
        rules = parse_rules(of(keys.SSL_PRINCIPAL_MAPPING_RULES))
    except ValueError as error:
        raise of.error(keys.SSL_PRINCIPAL_MAPPING_RULES, str(error)) from None
    return ListenerTls(context, rules)


def client_context(settings: BrokerSettings, listener: str, server: ListenerTls) -> ssl.SSLContext:
    """What to connect to that listener of other brokers with; blocks.

    The broker shows its own certificate where the other asks for one. As in Kafka
    (`SslEngineValidator`), it has to trust it itself: brokers of a cluster are alike, and one that
    would not connect to itself reaches no other. Raises SettingError or StoreError.
    """
    of = _Of(settings, listener)
    context = _prepared(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), of)
    key = keys.SSL_ENDPOINT_IDENTIFICATION_ALGORITHM
    algorithm = of(key).strip().lower()
    if algorithm not in ("", HTTPS):
        raise of.error(key, f"only {HTTPS} is offered, or nothing, which trusts any host name")
    if not _trust(context, of):
        context.load_default_certs()  # As Java does without a trust store.
    context.check_hostname = False
    try:
        _shake_hands(context, server.context)
    except ssl.SSLError as error:
        reason = f"the listener's key store and trust store do not fit each other: {error}"
        raise of.error(keys.SSL_TRUSTSTORE_LOCATION, reason) from error
    context.check_hostname = algorithm == HTTPS
    return context


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Have two contexts agree, in memory. Raises SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        for side in list(sides):
            before = to_server.pending + to_client.pending
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                if before == to_server.pending + to_client.pending == 0:
                    raise


def store_files(
    settings: BrokerSettings, listener: str, others: Iterable[Path] = ()
) -> dict[Path, FileState]:
    """The store files of a listener, with what changes when one is replaced or written.

    `others` are files beside them that are watched, too.
    """
    names = (settings.of_listener(listener, key) for key in FILES)
    paths = [*(Path(name) for name in names if name), *others]
    return {path: file_state(path) for path in paths}


def file_state(path: Path) -> FileState:
    """What changes when a file is replaced or written; zeros where there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


class _Of:
    """The settings of one listener."""

    def __init__(self, settings: BrokerSettings, listener: str) -> None:
        self._settings = settings
        self._listener = listener

    def __call__(self, key: Key[Any]) -> Any:
        return self._settings.of_listener(self._listener, key)

    def error(self, key: Key[Any], message: str) -> SettingError:
        name = f"listener.name.{self._listener.lower()}.{key.name}"
        if self._settings.own_of_listener(self._listener, key) is None:
            name = key.name
        value = self(key)
        shown = None if key.sensitive or value is None else key.format(value)
        return SettingError(name, shown, f"{message} (listener {self._listener})")

    def store(self, location: Key[Any], kind: Key[Any], password: Key[Any]) -> Store:
        """A store file; where no type is given, its name says it, else it is JKS as in Java."""
        path = Path(self(location))
        if path.exists() and not path.is_file():
            # Reading it may never end: a named pipe without a writer, or /dev/zero.
            raise self.error(location, "it is no file")
        given = self(kind)
        named = self._settings.own_of_listener(self._listener, kind) or self._settings.given(
            kind.name
        )
        as_given = named or not named_by_ending(path)
        return Store(path=path, kind=given if as_given else None, password=self(password))


def _prepared(context: ssl.SSLContext, of: _Of) -> ssl.SSLContext:
    """With what both sides of a connection have: versions, ciphers, the broker's certificate."""
    versions = _versions(of)
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    _choose_ciphers(context, of)
    _show_identity(context, of)
    return context


def _versions(of: _Of) -> list[ssl.TLSVersion]:
    names: tuple[str, ...] = of(keys.SSL_ENABLED_PROTOCOLS)
    unknown = [name for name in names if name not in VERSIONS]
    if unknown or not names:
        allowed = " and ".join(VERSIONS)
        raise of.error(keys.SSL_ENABLED_PROTOCOLS, f"only {allowed} are offered")
    return [VERSIONS[name] for name in names]


def _choose_ciphers(context: ssl.SSLContext, of: _Of) -> None:
    names: tuple[str, ...] = of(keys.SSL_CIPHER_SUITES)
    if not names:
        return
    key = keys.SSL_CIPHER_SUITES
    if unknown := [name for name in names if name not in CIPHERS and name not in CIPHERS_OF_1_3]:
        known = ", ".join([*CIPHERS, *sorted(CIPHERS_OF_1_3)])
        raise of.error(key, f"{unknown[0]} is not offered, only {known}")
    offers_1_3 = context.maximum_version is ssl.TLSVersion.TLSv1_3
    if offers_1_3 and not set(names) >= CIPHERS_OF_1_3:
        missing = ", ".join(sorted(CIPHERS_OF_1_3 - set(names)))
        raise of.error(
            key, f"the ciphers of TLSv1.3 cannot be chosen: add {missing}, or enable TLSv1.2 only"
        )
    chosen = [CIPHERS[name] for name in names if name in CIPHERS]
    if chosen:
        context.set_ciphers(":".join(chosen))
    elif context.minimum_version is ssl.TLSVersion.TLSv1_2:
        raise of.error(key, "no cipher for TLSv1.2 is among them")


def _show_identity(context: ssl.SSLContext, of: _Of) -> None:
    key, chain = of(keys.SSL_KEYSTORE_KEY), of(keys.SSL_KEYSTORE_CERTIFICATE_CHAIN)
    if key or chain:
        if not (key and chain):
            lacks = keys.SSL_KEYSTORE_CERTIFICATE_CHAIN if key else keys.SSL_KEYSTORE_KEY
            raise of.error(lacks, "a key needs a certificate chain, and a chain a key")
        if of(keys.SSL_KEYSTORE_TYPE).upper() != PEM:
            raise of.error(keys.SSL_KEYSTORE_TYPE, "an inline key store is of type PEM")
        load_pem_identity(context, key=key, chain=chain, password=of(keys.SSL_KEY_PASSWORD))
        return
    if not of(keys.SSL_KEYSTORE_LOCATION):
        raise of.error(
            keys.SSL_KEYSTORE_LOCATION, "a TLS listener needs the broker's key and certificate"
        )
    store = of.store(keys.SSL_KEYSTORE_LOCATION, keys.SSL_KEYSTORE_TYPE, keys.SSL_KEYSTORE_PASSWORD)
    if store.format == PEM:
        # In PEM the key alone is encrypted; Kafka refuses a password of the store (KIP-651).
        store = Store(path=store.path, kind=PEM, password=of(keys.SSL_KEY_PASSWORD))
    load_identity(context, store)


def _trust(context: ssl.SSLContext, of: _Of) -> bool:
    """Have a context trust what the trust store holds; False where none is given."""
    certificates = of(keys.SSL_TRUSTSTORE_CERTIFICATES)
    if certificates:
        if of(keys.SSL_TRUSTSTORE_TYPE).upper() != PEM:
            raise of.error(keys.SSL_TRUSTSTORE_TYPE, "an inline trust store is of type PEM")
        load_pem_trust(context, certificates)
        return True
    if not of(keys.SSL_TRUSTSTORE_LOCATION):
        return False
    load_trust(
        context,
        of.store(
            keys.SSL_TRUSTSTORE_LOCATION, keys.SSL_TRUSTSTORE_TYPE, keys.SSL_TRUSTSTORE_PASSWORD
        ),
    )
    return True
