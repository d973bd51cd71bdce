"""What a broker shows when it connects to another: the client's role on a listener of brokers.

As in Kafka (`ChannelBuilders.clientChannelBuilder` with the login context of a server), it comes
from the broker's own listener of that name: its key store and trust store, and the `username` and
`password` of its login module for `sasl.mechanism.inter.broker.protocol`. For OAUTHBEARER the
module has what tokens are given for.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from barnabas_broker.security.bearer_login import BearerLogin
from barnabas_broker.security.bearer_settings import MECHANISM, client_login
from barnabas_broker.security.jaas import LoginModule, Sections
from barnabas_broker.security.listener_tls import ListenerTls, client_context
from barnabas_broker.security.sasl_settings import MODULES, SECTION, jaas_name, login_module
from barnabas_kafka.client.sasl import (
    Mechanism,
    OAuthBearer,
    Plain,
    Scram,
    ScramMechanism,
    TokenProvider,
)
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.listeners import SecurityProtocol


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """How to connect to a listener of other brokers."""

    protocol: SecurityProtocol
    tls: ssl.SSLContext | None
    mechanism: Mechanism | None


def client_security(
    settings: BrokerSettings,
    listener: str,
    protocol: SecurityProtocol,
    *,
    tls: ListenerTls | None,
    sections: Sections,
    tokens: Callable[[BearerLogin], TokenProvider],
) -> ClientSecurity:
    """Read settings and files of a listener whose TLS as a server is `tls`; blocks.

    `tokens` gives what provides bearer tokens for a login.

    Raises SettingError or StoreError.
    """
    context = None if tls is None else client_context(settings, listener, tls)
    mechanism: Mechanism | None = None
    if protocol.sasl:
        name = settings[keys.SASL_MECHANISM_INTER_BROKER_PROTOCOL]
        module = login_module(settings, listener, name, sections)
        if name == MECHANISM:
            login = client_login(settings, listener, {} if module is None else module.options)
            mechanism = OAuthBearer(tokens(login), login.extensions)
        else:
            mechanism = _with_password(name, module, listener)
    return ClientSecurity(protocol, context, mechanism)


def _with_password(name: str, module: LoginModule | None, listener: str) -> Plain | Scram:
    user, password = (
        (None, None)
        if module is None
        else (module.options.get("username"), module.options.get("password"))
    )
    if not user or password is None:
        message = (
            f"brokers connect to each other with {name}: give {MODULES[name]} a username and a "
            f"password, here or in the section {listener.lower()}.{SECTION} of the login file"
        )
        raise SettingError(jaas_name(listener, name), None, message)
    if module is not None and module.options.get("tokenauth", "false").lower() == "true":
        message = "brokers do not connect to each other with delegation tokens"
        raise SettingError(jaas_name(listener, name), None, message)
    if name == "PLAIN":
        return Plain(user, password)
    return Scram(user, password, cast(ScramMechanism, name))
