"""The SASL settings of one listener: its mechanisms, and the users of each.

Credentials of PLAIN are the `user_<name>` options of its login module; those of SCRAM are in the
coordination data. A listener's login module is, as in Kafka (`JaasContext`), the setting
`listener.name.<listener>.<mechanism>.sasl.jaas.config`, else the section `<listener>.KafkaServer`
or `KafkaServer` of the JVM's login file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas_broker.security.bearer_settings import BearerSettings, bearer_settings
from barnabas_broker.security.jaas import JaasError, LoginModule, Sections, parse
from barnabas_broker.security.sasl import MECHANISMS
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MODULES: Final = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTHBEARER_MODULE,
}
SECTION: Final = "KafkaServer"
_USER: Final = "user_"


@dataclass(frozen=True, slots=True)
class ListenerSasl:
    """What a listener authenticates clients by."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = field(repr=False)
    """Of PLAIN, by user."""
    receive_bytes_max: int
    reauthentication_ms: Mapping[str, int]
    """How long a session lasts by mechanism (KIP-368); 0 for ever."""
    failure_delay_ms: int
    bearer: BearerSettings | None = None
    """Of OAUTHBEARER, where that is offered."""


def listener_sasl(settings: BrokerSettings, listener: str, sections: Sections) -> ListenerSasl:
    """Read the settings of a listener; raises SettingError for what is not offered or missing."""
    enabled = settings.of_listener(listener, keys.SASL_ENABLED_MECHANISMS)
    refused = [name for name in enabled if name not in MECHANISMS]
    if refused or not enabled:
        own = settings.own_of_listener(listener, keys.SASL_ENABLED_MECHANISMS)
        name = keys.SASL_ENABLED_MECHANISMS.name
        name = name if own is None else f"listener.name.{listener.lower()}.{name}"
        reason = f"{refused[0]} is not offered" if refused else "no mechanism is enabled"
        message = f"{reason} (listener {listener}); choose among {', '.join(MECHANISMS)}"
        raise SettingError(name, ",".join(enabled), message)
    _check_handlers(settings, listener, enabled)
    modules = {each: login_module(settings, listener, each, sections) for each in enabled}
    plain = modules.get("PLAIN")
    if "PLAIN" in modules and plain is None:
        raise SettingError(
            jaas_name(listener, "PLAIN"), None, f"PLAIN needs a {PLAIN_MODULE} with its users"
        )
    options = {} if plain is None else plain.options
    bearer = None
    if "OAUTHBEARER" in modules:
        login = modules["OAUTHBEARER"]
        bearer = bearer_settings(settings, listener, {} if login is None else login.options)
    return ListenerSasl(
        mechanisms=tuple(enabled),
        passwords={
            name.removeprefix(_USER): value
            for name, value in options.items()
            if name.startswith(_USER)
        },
        receive_bytes_max=settings[keys.SASL_SERVER_MAX_RECEIVE_SIZE],
        reauthentication_ms={it: _reauthentication_ms(settings, listener, it) for it in enabled},
        failure_delay_ms=settings[keys.CONNECTION_FAILED_AUTHENTICATION_DELAY_MS],
        bearer=bearer,
    )


def _check_handlers(settings: BrokerSettings, listener: str, enabled: tuple[str, ...]) -> None:
    """Refuse Java classes that would have to check, or to give, credentials by other mechanisms."""
    given = []
    for key in (keys.SASL_SERVER_CALLBACK_HANDLER_CLASS, keys.SASL_LOGIN_CALLBACK_HANDLER_CLASS):
        given += [
            f"listener.name.{listener.lower()}.{each.lower()}.{key.name}"
            for each in enabled
            if each != "OAUTHBEARER"
            and settings.own_of_listener(listener, key, mechanism=each) is not None
        ]
        if settings.of_listener(listener, key) is not None:
            given.append(key.name)
    if given:
        message = "only listener.name.<listener>.oauthbearer can have one of Kafka's own classes"
        raise SettingError(given[0], None, message)


def _reauthentication_ms(settings: BrokerSettings, listener: str, mechanism: str) -> int:
    key = keys.CONNECTIONS_MAX_REAUTH_MS
    own = settings.own_of_listener(listener, key, mechanism=mechanism)
    return settings.of_listener(listener, key) if own is None else key.parse(own)


def login_module(
    settings: BrokerSettings, listener: str, mechanism: str, sections: Sections
) -> LoginModule | None:
    """The login module of a listener's mechanism, None for none. Raises SettingError."""
    name = jaas_name(listener, mechanism)
    text = settings.own_of_listener(listener, keys.SASL_JAAS_CONFIG, mechanism=mechanism)
    if text is not None:
        try:
            (module,) = parse(f"{SECTION} {{ {text.strip()}\n}};")[
                SECTION
            ]  # It may end in a comment.
        except JaasError as error:
            raise SettingError(name, None, f"malformed: {error}") from None
        except ValueError:
            raise SettingError(name, None, "it has to be one login module") from None
        if module.name != MODULES[mechanism]:
            # What no login module is called may be a part of a password.
            given = module.name if module.name in MODULES.values() else "another class"
            raise SettingError(name, None, f"{mechanism} needs {MODULES[mechanism]}, not {given}")
        return module
    section = sections.get(f"{listener.lower()}.{SECTION}") or sections.get(SECTION) or ()
    return next((each for each in section if each.name == MODULES[mechanism]), None)


def jaas_name(listener: str, mechanism: str) -> str:
    """The name of the setting that holds a login module."""
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.{keys.SASL_JAAS_CONFIG.name}"
