"""What a listener checks bearer tokens by: its settings of OAUTHBEARER, and its login module.

Each setting is, as in Kafka, that of the listener's mechanism (`listener.name.<listener>.
oauthbearer.<setting>`), else that of the listener, else the broker's. Kafka believes unsecured
tokens where nothing is said; here the setting `sasl.server.callback.handler.class` has to name its
handler for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from barnabas_broker.security.bearer_login import BearerLogin, BearerLoginError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key, SettingError

MECHANISM: Final = "OAUTHBEARER"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
UNSECURED_HANDLER: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
SIGNED_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
_PREFIX: Final = "unsecuredValidator"


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where a listener's keys are, and how they are fetched."""

    url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    trust: Mapping[str, str] = field(repr=False)
    """`ssl.truststore.*` of the login module, for https."""

    @property
    def file(self) -> Path | None:
        """The file of a file:// address, None for another."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None


@dataclass(frozen=True, slots=True)
class SignedTokenSettings:
    """For tokens that have to be signed."""

    source: KeySource
    audience: tuple[str, ...]
    issuer: str | None
    clock_skew_s: int
    scope_claim: str
    subject_claim: str


@dataclass(frozen=True, slots=True)
class UnsecuredTokenSettings:
    """For unsecured tokens: the options of Kafka's handler."""

    subject_claim: str
    scope_claim: str
    required_scope: tuple[str, ...]
    clock_skew_ms: int


BearerSettings = SignedTokenSettings | UnsecuredTokenSettings


def bearer_settings(
    settings: BrokerSettings, listener: str, options: Mapping[str, str]
) -> BearerSettings:
    """Read the settings of a listener; `options` are its login module's. Raises SettingError."""
    of = _Of(settings, listener)
    handler = settings.own_of_listener(
        listener, keys.SASL_SERVER_CALLBACK_HANDLER_CLASS, mechanism=MECHANISM
    )
    if handler is not None and handler.strip() == UNSECURED_HANDLER:
        return _unsecured(of, options)
    if handler is not None and handler.strip() not in SIGNED_HANDLERS:
        known = ", ".join((UNSECURED_HANDLER, *SIGNED_HANDLERS))
        raise of.error(
            keys.SASL_SERVER_CALLBACK_HANDLER_CLASS, f"Java classes are not loaded; known: {known}"
        )
    return SignedTokenSettings(
        source=_source(of, options),
        audience=tuple(of(keys.SASL_OAUTHBEARER_EXPECTED_AUDIENCE) or ()),
        issuer=of(keys.SASL_OAUTHBEARER_EXPECTED_ISSUER),
        clock_skew_s=of(keys.SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS),
        scope_claim=of(keys.SASL_OAUTHBEARER_SCOPE_CLAIM_NAME),
        subject_claim=of(keys.SASL_OAUTHBEARER_SUB_CLAIM_NAME),
    )


def key_file(settings: BrokerSettings, listener: str) -> tuple[Path, ...]:
    """The file that holds a listener's keys, if they are in one."""
    url = _Of(settings, listener)(keys.SASL_OAUTHBEARER_JWKS_ENDPOINT_URL) or ""
    return (Path(unquote(urlsplit(url).path)),) if url.startswith("file:") else ()


def client_login(
    settings: BrokerSettings, listener: str, options: Mapping[str, str]
) -> BearerLogin:
    """How the broker gets tokens for other brokers; raises SettingError.

    `options` are the listener's login module's, of which some are for the broker as a server.
    """
    of = _Of(settings, listener)
    own = {name: value for name, value in options.items() if not name.startswith(_PREFIX)}
    handler = settings.own_of_listener(
        listener, keys.SASL_LOGIN_CALLBACK_HANDLER_CLASS, mechanism=MECHANISM
    )
    try:
        return BearerLogin.read(
            of(keys.SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL) or "", own, handler or ""
        )
    except BearerLoginError as error:
        key = keys.SASL_JAAS_CONFIG
        raise of.error(key, f"brokers connect to each other with {MECHANISM}: {error}") from None


def _source(of: "_Of", options: Mapping[str, str]) -> KeySource:
    key = keys.SASL_OAUTHBEARER_JWKS_ENDPOINT_URL
    url = of(key)
    if not url:
        raise of.error(
            key,
            f"{MECHANISM} needs the keys that sign tokens; tokens without a signature are accepted "
            f"only with {of.name(keys.SASL_SERVER_CALLBACK_HANDLER_CLASS)}={UNSECURED_HANDLER}",
        )
    try:
        parts = urlsplit(url)
        named = parts.path if parts.scheme == "file" else parts.hostname
        known = parts.scheme in ("file", "http", "https") and parts.port != 0
    except ValueError:
        known, named = False, None
    if not known or not named:
        raise of.error(key, "an address begins with https://, http:// or file://")
    return KeySource(
        url=url,
        refresh_ms=of(keys.SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS),
        retry_backoff_ms=of(keys.SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS),
        retry_backoff_max_ms=of(keys.SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS),
        trust={name: it for name, it in options.items() if name.startswith("ssl.truststore.")},
    )


def _unsecured(of: "_Of", options: Mapping[str, str]) -> UnsecuredTokenSettings:
    skew = options.get(f"{_PREFIX}AllowableClockSkewMs", "0").strip()
    if not skew.isdecimal():
        raise of.error(keys.SASL_JAAS_CONFIG, f"{_PREFIX}AllowableClockSkewMs is no time")
    return UnsecuredTokenSettings(
        subject_claim=options.get(f"{_PREFIX}PrincipalClaimName", "").strip() or "sub",
        scope_claim=options.get(f"{_PREFIX}ScopeClaimName", "").strip() or "scope",
        required_scope=tuple(options.get(f"{_PREFIX}RequiredScope", "").split()),
        clock_skew_ms=int(skew),
    )


class _Of:
    """The settings of one listener's mechanism."""

    def __init__(self, settings: BrokerSettings, listener: str) -> None:
        self._settings = settings
        self._listener = listener

    def __call__(self, key: Key[Any]) -> Any:
        own = self._settings.own_of_listener(self._listener, key, mechanism=MECHANISM)
        return self._settings.of_listener(self._listener, key) if own is None else key.parse(own)

    def name(self, key: Key[Any]) -> str:
        """The setting's full name for this listener."""
        return f"listener.name.{self._listener.lower()}.{MECHANISM.lower()}.{key.name}"

    def error(self, key: Key[Any], message: str) -> SettingError:
        return SettingError(self.name(key), None, f"{message} (listener {self._listener})")
