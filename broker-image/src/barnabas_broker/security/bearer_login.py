"""How a client gets bearer tokens: from a file, or for its own credentials (KIP-768).

The options are those of Kafka's OAuthBearerLoginModule with its OAuthBearerLoginCallbackHandler:
`clientId`, `clientSecret`, `scope`, `extension_<name>` and `ssl.truststore.*`; the address is the
setting `sasl.oauthbearer.token.endpoint.url`. Unsecured tokens, which Kafka's client
makes where no handler is named, are not made here.
"""

import binascii
import json
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
HANDLER: Final = "sasl.login.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
BYTES_MAX: Final = 1 << 16
"""Of a provider's answer; a broker takes no longer token."""
REFRESH_FACTOR: Final = 0.8
"""Share of a token's life after which another one is fetched, as in Kafka."""
TIME_MAX_S: Final = 2.0**63
"""No time in a token is beyond it."""

_EXTENSION: Final = "extension_"
_TRUST: Final = "ssl.truststore."
_OWN: Final = ("clientId", "clientSecret", "scope")


class BearerLoginError(ValueError):
    """No token can be had; one line says why, with nothing of a secret."""


@dataclass(frozen=True, slots=True)
class BearerLogin:
    """Where tokens come from, and what is shown for them."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)
    trust: Mapping[str, str] = field(default_factory=dict, repr=False)
    """`ssl.truststore.*`, for https."""

    @classmethod
    def read(cls, url: str, options: Mapping[str, str], handler: str = "") -> "BearerLogin":
        """By the address, a login module's options and the handler's class.

        Raises BearerLoginError for what is missing or not known, by its name.
        """
        if handler.strip() and handler.strip() not in HANDLERS:
            raise BearerLoginError(f"{HANDLER}: Java classes are not loaded; known: {HANDLERS[0]}")
        unknown = sorted(
            name
            for name in options
            if name not in _OWN and not name.startswith((_EXTENSION, _TRUST))
        )
        if unknown:
            raise BearerLoginError(f"the option {unknown[0]} of the login module is not supported")
        if not url:
            raise BearerLoginError(
                f"{ENDPOINT} is missing: an https://, http:// or file:// address of tokens (tokens "
                "without a signature are not made)"
            )
        login = cls(
            url=url,
            client_id=options.get("clientId", ""),
            client_secret=options.get("clientSecret", ""),
            scope=options.get("scope", ""),
            extensions={
                name.removeprefix(_EXTENSION): value
                for name, value in options.items()
                if name.startswith(_EXTENSION)
            },
            trust={name: value for name, value in options.items() if name.startswith(_TRUST)},
        )
        login._check()
        return login

    def _check(self) -> None:
        try:
            parts = urlsplit(self.url)
            named = parts.path if parts.scheme == "file" else parts.hostname
            known = parts.scheme in ("file", "http", "https") and parts.port != 0
        except ValueError:
            known, named = False, None
        if not known or not named:
            raise BearerLoginError(
                f"{ENDPOINT}: an address begins with https://, http:// or file://"
            )
        if self.file is None and not (self.client_id and self.client_secret):
            raise BearerLoginError("the login module needs clientId and clientSecret")

    @property
    def file(self) -> Path | None:
        """The file of a file:// address, None for another."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @property
    def form(self) -> bytes:
        """What is posted (RFC 6749, 4.4.2)."""
        scope = {"scope": self.scope} if self.scope else {}
        return urlencode({"grant_type": "client_credentials", **scope}).encode()

    @property
    def authorization(self) -> str:
        """The header that has the credentials; as in Kafka they are not encoded as in a URL."""
        return f"Basic {b64encode(f'{self.client_id}:{self.client_secret}'.encode()).decode()}"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as it is sent, and the seconds of the epoch from and to which it is good."""

    text: str = field(repr=False)
    issued_at_s: float
    expires_at_s: float

    @property
    def refresh_at_s(self) -> float:
        """When to fetch another one."""
        life_s = self.expires_at_s - self.issued_at_s
        return self.issued_at_s + life_s * REFRESH_FACTOR

    @classmethod
    def of_file(cls, content: bytes, now_s: float) -> "AccessToken":
        """The token in a file; raises BearerLoginError."""
        return cls._parse(content.decode("ascii", "replace").strip(), now_s)

    @classmethod
    def of_answer(cls, content: bytes, now_s: float) -> "AccessToken":
        """The token in a provider's answer (RFC 6749, 5.1); raises BearerLoginError."""
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            raise BearerLoginError("the answer of the token endpoint is not JSON") from None
        text = document.get("access_token") if isinstance(document, dict) else None
        if not isinstance(text, str):
            raise BearerLoginError("the answer of the token endpoint has no access_token")
        return cls._parse(text, now_s)

    @classmethod
    def _parse(cls, text: str, now_s: float) -> "AccessToken":
        """As in Kafka (LoginAccessTokenValidator), brokers alone check the signature."""
        claims = _claims(text)
        expires: Any = claims.get("exp")
        issued: Any = claims.get("iat", now_s)
        if not (_is_time(expires) and _is_time(issued)):
            raise BearerLoginError("the token has no time in exp, or something else in iat")
        if expires <= now_s:
            raise BearerLoginError("the token has expired")
        return cls(text, min(issued, now_s), expires)


def _is_time(value: object) -> bool:
    """Whether a claim is a number of seconds; Python reads NaN and Infinity as JSON, too."""
    return isinstance(value, int | float) and abs(value) < TIME_MAX_S


def _claims(text: str) -> dict[str, Any]:
    parts = text.split(".")
    try:
        if len(parts) != 3 or not text.isascii():
            raise ValueError
        document = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError, binascii.Error):
        document = None
    if not isinstance(document, dict):
        raise BearerLoginError("what was given for a token is no JSON Web Token")
    return document
