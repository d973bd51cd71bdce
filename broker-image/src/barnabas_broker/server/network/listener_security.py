"""How the connections of one listener are protected, and by what their principals are known."""

import asyncio
import logging
import os
import secrets
import ssl
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas_broker.security.bearer_settings import (
    BearerSettings,
    KeySource,
    SignedTokenSettings,
    key_file,
)
from barnabas_broker.security.listener_tls import (
    FileState,
    ListenerTls,
    listener_tls,
    store_files,
)
from barnabas_broker.security.oauthbearer import Validate
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.security.resumed_sessions import keeps_many, outlives_certificate
from barnabas_broker.security.sasl_settings import listener_sasl
from barnabas_broker.security.scram import (
    ScramCredential,
    ScramMechanism,
    TokenLogin,
    scram_credential,
)
from barnabas_broker.security.scram_decoys import Decoy, Decoys, random_decoy
from barnabas_broker.security.ssl_principals import certificate_principal
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.control.login_file import jvm_properties, login_file, read_sections
from barnabas_broker.server.network.sasl_authenticator import SaslProvider
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings.broker import BrokerSettings, find_key
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.listeners import Listener as Address

if TYPE_CHECKING:
    from barnabas_broker.security.bearer_login import BearerLogin
    from barnabas_broker.security.client_security import ClientSecurity
    from barnabas_broker.server.network.jwks_endpoint import JwksEndpoint
    from barnabas_broker.server.network.token_endpoint import TokenEndpoint
    from barnabas_kafka.client.sasl import TokenProvider

log = logging.getLogger(__name__)

DECOY_KEY: Final = secrets.token_bytes(32)
"""What decoys of SCRAM are made of while there are no users, and those of delegation tokens."""

RENEWAL_S: Final = 1.0
"""How often to look for changed key stores and settings."""


class ListenerSecurity:
    """The TLS and SASL of a listener. Established connections never notice a renewal."""

    def __init__(
        self, address: Address, settings: BrokerSettings, broker: Callable[[], BrokerServices]
    ) -> None:
        """Read settings and files; raises StartupError.

        `broker` gives settings and users as they are, once it serves.
        """
        self._name = address.name
        self._protocol = address.protocol
        file = login_file(jvm_properties(os.environ.get("KAFKA_OPTS", "")))
        self._sections = read_sections(file) if file else {}
        self._decoys: dict[ScramMechanism, Decoys] = {}
        self._broker = broker
        self._settings = settings
        self.tls: ListenerTls | None = None
        self.sasl: SaslProvider | None = None
        self.client: ClientSecurity | None = None
        """How to connect to this listener of other brokers; None for one that they do not use."""
        self._endpoint: JwksEndpoint | None = None
        self._tokens: TokenEndpoint | None = None
        self._followed: JwksEndpoint | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._fetching: asyncio.Task[None] | None = None
        # Stat before reading: a later change is read again.
        self._files = self._watched(settings)
        try:
            self._read(settings)
        except (SettingError, StoreError) as error:
            raise StartupError(f"listener {address.name}: {error}") from error

    def start(self) -> None:
        """Follow changes of settings and files from now on, and fetch keys. On the loop."""
        name = f"renewal of the certificates of {self._name}"
        self._renewal = background().every(name, lambda: RENEWAL_S, self._renew)
        self._follow_endpoint()

    def stop(self) -> None:
        """End what `start` began."""
        for task in (self._renewal, self._fetching):
            if task is not None:
                task.cancel()

    @property
    def context(self) -> ssl.SSLContext | None:
        """What to accept the next connection with; None for plaintext."""
        return None if self.tls is None else self.tls.context

    def check_resumed(self, tls: ssl.SSLObject | None) -> None:
        """Raise ValueError for a TLS session that has outlived its client's certificate."""
        if tls is not None and outlives_certificate(tls, time.time()):
            raise ValueError("its certificate has expired since its TLS session began")

    def certificate_principal(self, tls: ssl.SSLObject | None) -> Principal:
        """The principal of a client's certificate, ANONYMOUS without one. Raises ValueError."""
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
        files = self._watched(settings)
        changed = self._settings is not settings
        if not changed and files == self._files:
            if self.tls is not None and keeps_many(self.tls.context):
                with suppress(SettingError, StoreError):  # Logged when they changed.
                    self.tls = listener_tls(settings, self._name)
            return
        self._settings, self._files = settings, files
        try:
            self._read(settings)
        except (SettingError, StoreError) as error:
            log.error("Listener %s keeps its earlier TLS and SASL settings: %s", self._name, error)
            return
        if not changed:
            log.info("Reloaded the key files of listener %s", self._name)

    def validate_reconfiguration(self, settings: BrokerSettings, changed: Collection[str]) -> None:
        """Raise KafkaError where the listener could not use settings that are to change; blocks.

        Stored, they would keep the broker from starting.
        """
        if not any(self._is_concerned(name) for name in changed):
            return
        try:
            tls = listener_tls(settings, self._name) if self._protocol.tls else None
            if self._protocol.sasl:
                listener_sasl(settings, self._name, self._sections)
            if self.client is not None:
                from barnabas_broker.security.client_security import client_security

                client_security(
                    settings, self._name, self._protocol,
                    tls=tls, sections=self._sections, tokens=lambda _: str,
                )  # fmt: skip
        except (SettingError, StoreError) as error:
            reason = f"Listener {self._name} cannot use these settings: {error}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason) from error

    def _is_concerned(self, name: str) -> bool:
        """Whether a setting, of this listener or of all, has to do with TLS or SASL."""
        key = find_key(name)
        if key is None or not key.name.startswith(("ssl.", "sasl.")):
            return False
        return name == key.name or name.startswith(f"listener.name.{self._name.lower()}.")

    def _read(self, settings: BrokerSettings) -> None:
        tls = sasl = client = None
        if self._protocol.tls:
            tls = listener_tls(settings, self._name)
        if self._protocol.sasl:
            found = listener_sasl(settings, self._name, self._sections)
            validate = None if found.bearer is None else self._validator(found.bearer)
            sasl = SaslProvider(
                found, self._find_scram, self._find_token, self._find_decoy, validate
            )
        if self._name in settings.listeners_among_brokers:
            # Late, for it brings parts of the client's library.
            from barnabas_broker.security.client_security import client_security

            client = client_security(
                settings, self._name, self._protocol,
                tls=tls, sections=self._sections, tokens=self._tokens_for,
            )  # fmt: skip
        self.tls, self.sasl, self.client = tls, sasl, client

    def _tokens_for(self, login: "BearerLogin") -> "TokenProvider":
        """Those of the endpoint, with the token that it has, unless it is another one now."""
        from barnabas_broker.server.network.token_endpoint import TokenEndpoint

        if self._tokens is None or self._tokens.login != login:
            self._tokens = TokenEndpoint(login)
        return self._tokens.provide

    def _find_scram(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        return scram_credential(self._broker().image.user_configs, mechanism, user)

    def _find_decoy(self, mechanism: ScramMechanism, name: str, of_token: bool) -> Decoy:
        if of_token:  # Were it the user's, whose own answer differs would be known for a user.
            return random_decoy(DECOY_KEY, name)
        users = self._broker().image.user_configs
        decoys = self._decoys.get(mechanism)
        if decoys is None or decoys.users is not users:
            decoys = self._decoys[mechanism] = Decoys(users, mechanism, key=DECOY_KEY)
        return decoys.of(name)

    def _find_token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        tokens = self._broker().security.tokens
        if tokens is None:
            return None
        return tokens.cache.credential(mechanism, token_id, now_ms=int(time.time() * 1000))

    def _watched(self, settings: BrokerSettings) -> dict[Path, FileState]:
        return store_files(settings, self._name, key_file(settings, self._name))

    # Keys of OAUTHBEARER.

    def _validator(self, bearer: BearerSettings) -> Validate:
        # Only where it is wanted: PyJWT and cryptography take a third of a second.
        from barnabas_broker.security.bearer_tokens import SignedTokens, UnsecuredTokens
        from barnabas_broker.server.network.jwks_endpoint import FileKeys

        if not isinstance(bearer, SignedTokenSettings):
            log.warning("Listener %s accepts unsecured tokens of OAUTHBEARER", self._name)
            self._endpoint = None
            return UnsecuredTokens(
                now_s=time.time,
                subject_claim=bearer.subject_claim,
                scope_claim=bearer.scope_claim,
                required_scope=bearer.required_scope,
                clock_skew_s=bearer.clock_skew_ms / 1000,
            )
        file = bearer.source.file
        keys: FileKeys | JwksEndpoint
        if file is None:
            keys = self._endpoint_of(bearer.source)
        else:
            keys, self._endpoint = FileKeys(file), None
        return SignedTokens(
            keys=lambda: keys.keys,
            key_missing=keys.key_missing,
            now_s=time.time,
            audience=bearer.audience,
            issuer=bearer.issuer,
            clock_skew_s=bearer.clock_skew_s,
            scope_claim=bearer.scope_claim,
            subject_claim=bearer.subject_claim,
        )

    def _endpoint_of(self, source: KeySource) -> "JwksEndpoint":
        """The endpoint with the keys that it has, unless it is another one now."""
        from barnabas_broker.server.network.jwks_endpoint import JwksEndpoint

        if self._endpoint is None or self._endpoint.source != source:
            self._endpoint = JwksEndpoint(source)
        return self._endpoint

    async def _renew(self) -> None:
        await asyncio.to_thread(self.renew)
        self._follow_endpoint()

    def _follow_endpoint(self) -> None:
        endpoint = self._endpoint
        if endpoint is self._followed:
            return
        if self._fetching is not None:
            self._fetching.cancel()
        self._followed = endpoint
        if endpoint is not None:
            name = f"keys of OAUTHBEARER of {self._name}"
            self._fetching = background().keep(name, endpoint.follow)
