"""The credentials and TLS a broker uses for ZooKeeper: Kafka's settings, files and environment.

Kafka reads user and password from the section `Client` of a JAAS file, which properties of the JVM
in KAFKA_OPTS name. They are read here, too, so that what starts an Apache broker starts this one;
`barnabas.zookeeper.jaas.file` is the same as a setting.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from barnabas_broker.security import jaas
from barnabas_broker.security.listener_tls import CIPHERS, VERSIONS, FileState, file_state
from barnabas_broker.security.stores import (
    Store,
    StoreError,
    identity_pem,
    load_identity,
    load_trust,
    trust_pem,
)
from barnabas_broker.server.control.login_file import (
    FILE_PROPERTY,
    jvm_properties,
    login_file,
    read_sections,
)
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.zk.credentials import Credentials, Login, TlsMaterial
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key

SECTION: Final = "Client"
SECTION_PROPERTY: Final = "zookeeper.sasl.clientconfig"
SASL_PROPERTY: Final = "zookeeper.sasl.client"
STORES: Final = (keys.ZOOKEEPER_SSL_TRUSTSTORE_LOCATION, keys.ZOOKEEPER_SSL_KEYSTORE_LOCATION)
NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"

log = logging.getLogger(__name__)


def credentials(settings: BrokerSettings, environment: Mapping[str, str]) -> Credentials:
    """What the broker shows to ZooKeeper. Reads files.

    Raises StartupError, in one line, for files that cannot be used, for what is not offered, and,
    as Kafka does, for `zookeeper.set.acl` without an identity of the broker.
    """
    login = _login(settings, environment)
    digest = settings[keys.BARNABAS_ZOOKEEPER_DIGEST]
    tls, material, stores = None, None, None
    if settings[keys.ZOOKEEPER_SSL_CLIENT_ENABLE]:
        stores = _Stores(settings)  # Before reading: later changes are read again.
        tls, material = _tls(settings)
    set_acl = settings[keys.ZOOKEEPER_SET_ACL]
    shown = tls is not None and settings[keys.ZOOKEEPER_SSL_KEYSTORE_LOCATION]
    if set_acl and login is None and digest is None and not shown:
        raise StartupError(
            f"{keys.ZOOKEEPER_SET_ACL.name}=true needs an owner of the znodes: a user "
            f"in the section {SECTION} of a JAAS file ({keys.BARNABAS_ZOOKEEPER_JAAS_FILE.name}, "
            f"or -D{FILE_PROPERTY} in KAFKA_OPTS), or a certificate "
            f"({keys.ZOOKEEPER_SSL_CLIENT_ENABLE.name}, "
            f"{keys.ZOOKEEPER_SSL_KEYSTORE_LOCATION.name})"
        )
    return Credentials(
        login=login,
        digest=digest,
        tls=tls,
        material=material,
        renewed=None if stores is None else stores.renewed,
        set_acl=set_acl,
    )


class _Stores:
    """The key store and the trust store, of which a session may last longer than its content."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._files = self._watched()

    def renewed(self) -> tuple[ssl.SSLContext, TlsMaterial] | None:
        """See Credentials. A context can only add trusted certificates, so this builds another."""
        files = self._watched()
        if files == self._files:
            return None
        self._files = files
        try:
            found = _tls(self._settings)
        except StartupError as error:
            log.error("ZooKeeper session keeps its earlier certificates: %s", error)
            return None
        log.info("Reloaded the certificates of the ZooKeeper session")
        return found

    def _watched(self) -> dict[str, FileState]:
        named = (self._settings[key] for key in STORES)
        return {place: file_state(Path(place)) for place in named if place}


def _login(settings: BrokerSettings, environment: Mapping[str, str]) -> Login | None:
    """The user of the JAAS file, None where there is no file or no section in it."""
    properties = jvm_properties(environment.get("KAFKA_OPTS", ""))
    own = settings[keys.BARNABAS_ZOOKEEPER_JAAS_FILE]
    file = own or login_file(properties)
    if not file or properties.get(SASL_PROPERTY, "true").lower() == "false":
        return None
    named = keys.BARNABAS_ZOOKEEPER_JAAS_FILE.name if own else f"-D{FILE_PROPERTY}"
    sections = read_sections(file, named)
    section = properties.get(SECTION_PROPERTY, SECTION)
    if section not in sections:
        if own:
            raise StartupError(f"{named}={file}: there is no section {section}")
        return None
    for module in sections[section]:
        where = f"{named}={file}, section {section}"
        if module.name != jaas.DIGEST_MODULE:
            raise StartupError(f"{where}: {module.name} is not offered, only {jaas.DIGEST_MODULE}")
        username, password = module.options.get("username"), module.options.get("password")
        if not username or password is None:
            raise StartupError(f"{where}: username and password are missing")
        return Login(username=username, password=password, source=f"{section} in {file}")
    return None


def _tls(settings: BrokerSettings) -> tuple[ssl.SSLContext, TlsMaterial]:
    _refuse_unoffered(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    algorithm = settings[keys.ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM]
    context.check_hostname = bool(algorithm.strip())
    versions = _versions(settings)
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    ciphers = _choose_ciphers(context, settings)
    trust = identity = password = None
    try:
        if place := settings[keys.ZOOKEEPER_SSL_TRUSTSTORE_LOCATION]:
            kind = settings[keys.ZOOKEEPER_SSL_TRUSTSTORE_TYPE]
            store = Store(
                path=Path(place),
                kind=kind,
                password=settings[keys.ZOOKEEPER_SSL_TRUSTSTORE_PASSWORD],
            )
            load_trust(context, store)
            trust = trust_pem(store)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if place := settings[keys.ZOOKEEPER_SSL_KEYSTORE_LOCATION]:
            kind = settings[keys.ZOOKEEPER_SSL_KEYSTORE_TYPE]
            password = settings[keys.ZOOKEEPER_SSL_KEYSTORE_PASSWORD]
            store = Store(path=Path(place), kind=kind, password=password)
            load_identity(context, store)
            identity = identity_pem(store).decode("latin-1")
    except StoreError as error:
        raise StartupError(f"zookeeper.ssl: {error}") from error
    return context, TlsMaterial(
        check_hostname=context.check_hostname,
        minimum=context.minimum_version,
        maximum=context.maximum_version,
        ciphers=ciphers,
        trust=trust,
        identity=identity,
        password=password,
    )


def _refuse_unoffered(settings: BrokerSettings) -> None:
    for key in (keys.ZOOKEEPER_SSL_CRL_ENABLE, keys.ZOOKEEPER_SSL_OCSP_ENABLE):
        if settings[key]:
            raise _refused(settings, key, "revoked certificates are not looked for")
    if (settings[keys.ZOOKEEPER_CLIENT_CNXN_SOCKET] or NETTY) != NETTY:
        raise _refused(settings, keys.ZOOKEEPER_CLIENT_CNXN_SOCKET, f"TLS needs {NETTY}, or none")
    algorithm = keys.ZOOKEEPER_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM
    if settings[algorithm].strip().upper() not in ("", "HTTPS"):
        raise _refused(settings, algorithm, "only HTTPS is known, and empty for none")


def _versions(settings: BrokerSettings) -> list[ssl.TLSVersion]:
    """Which to offer: those that are enabled, and where nothing is said of that, the one."""
    key: Key[Any] = keys.ZOOKEEPER_SSL_ENABLED_PROTOCOLS
    names: tuple[str, ...] | None = settings[key]
    if not names:
        key, names = keys.ZOOKEEPER_SSL_PROTOCOL, (settings[keys.ZOOKEEPER_SSL_PROTOCOL],)
    unknown = [name for name in names if name not in VERSIONS]
    if unknown:
        allowed = " and ".join(VERSIONS)
        raise _refused(settings, key, f"{unknown[0]} is not offered, only {allowed}")
    return [VERSIONS[name] for name in names]


def _choose_ciphers(context: ssl.SSLContext, settings: BrokerSettings) -> str | None:
    key = keys.ZOOKEEPER_SSL_CIPHER_SUITES
    names = settings[key]
    if not names:
        return None
    if context.maximum_version != ssl.TLSVersion.TLSv1_2:
        raise _refused(settings, key, "the ciphers of TLSv1.3 cannot be chosen")
    unknown = [name for name in names if name not in CIPHERS]
    if unknown:
        raise _refused(settings, key, f"{unknown[0]} is not offered, only {', '.join(CIPHERS)}")
    chosen = ":".join(CIPHERS[name] for name in names)
    context.set_ciphers(chosen)
    return chosen


def _refused(settings: BrokerSettings, key: Key[Any], reason: str) -> StartupError:
    return StartupError(f"{key.name}={settings.text(key)}: {reason}")
