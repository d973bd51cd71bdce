"""How the connections of one listener are protected, and by what their principals are known."""

import logging
import os
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas_broker.security.listener_tls import (
    ListenerTls,
    listener_tls,
    store_files,
)
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.security.sasl_settings import listener_sasl
from barnabas_broker.security.scram import ScramCredential, ScramMechanism, scram_credential
from barnabas_broker.security.ssl_principals import certificate_principal
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.broker import Broker
from barnabas_broker.server.login_file import jvm_properties, login_file, read_sections
from barnabas_broker.server.sasl_authenticator import SaslProvider
from barnabas_broker.server.startup import StartupError
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.listeners import Listener as Address

if TYPE_CHECKING:
    from barnabas_broker.security.client_security import ClientSecurity

log = logging.getLogger(__name__)


class ListenerSecurity:
    """The TLS and SASL of a listener. Established connections never notice a renewal."""

    def __init__(
        self, address: Address, settings: BrokerSettings, broker: Callable[[], Broker]
    ) -> None:
        """Read settings and files; raises StartupError.

        `broker` gives settings and users as they are, once it serves.
        """
        self._name = address.name
        self._protocol = address.protocol
        file = login_file(jvm_properties(os.environ.get("KAFKA_OPTS", "")))
        self._sections = read_sections(file) if file else {}
        self._broker = broker
        self._settings = settings
        self.tls: ListenerTls | None = None
        self.sasl: SaslProvider | None = None
        self.client: ClientSecurity | None = None
        """How to connect to this listener of other brokers; None for one that they do not use."""
        # Looked at before they are read: what changes meanwhile is read again.
        self._files = store_files(settings, address.name)
        try:
            self._read(settings)
        except (SettingError, StoreError) as error:
            raise StartupError(f"listener {address.name}: {error}") from error

    @property
    def context(self) -> ssl.SSLContext | None:
        """What to accept the next connection with; None for plaintext."""
        return None if self.tls is None else self.tls.context

    def certificate_principal(self, tls: ssl.SSLObject | None) -> Principal:
        """Whom a client's certificate names, ANONYMOUS without one. Raises ValueError."""
        der = None if tls is None else tls.getpeercert(binary_form=True)
        if der is None or self.tls is None:
            return ANONYMOUS
        principal = certificate_principal(der, self.tls.rules)
        if principal is None:
            raise ValueError("no rule of ssl.principal.mapping.rules matches its certificate")
        return principal

    def renew(self) -> None:
        """Read settings and files again where they have changed; blocks.

        What cannot be used is logged, and the listener keeps what it has.
        """
        settings = self._broker().settings
        files = store_files(settings, self._name)
        changed = self._settings is not settings
        if not changed and files == self._files:
            return
        self._settings, self._files = settings, files
        try:
            self._read(settings)
        except (SettingError, StoreError) as error:
            log.error("Listener %s keeps its earlier TLS and SASL settings: %s", self._name, error)
            return
        if self.tls is not None and not changed:
            log.info("Reloaded the key store and trust store of listener %s", self._name)

    def _read(self, settings: BrokerSettings) -> None:
        tls = sasl = client = None
        if self._protocol.tls:
            tls = listener_tls(settings, self._name)
        if self._protocol.sasl:
            found = listener_sasl(settings, self._name, self._sections)
            sasl = SaslProvider(found, self._find_scram)
        if self._name in settings.listeners_among_brokers:
            # Late, for it brings parts of the client's library.
            from barnabas_broker.security.client_security import client_security

            client = client_security(
                settings, self._name, self._protocol, tls=tls, sections=self._sections
            )
        self.tls, self.sasl, self.client = tls, sasl, client

    def _find_scram(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return scram_credential(self._broker().image.user_configs, mechanism, user)
