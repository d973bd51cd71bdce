"""Which bearer tokens are sound: JSON Web Tokens that a known key has signed, or unsecured ones.

`SignedTokens` checks as Kafka's OAuthBearerValidatorCallbackHandler (KIP-768) and a little more: a
token of the future (`iat`) is refused, and only signatures of asymmetric keys count, by the
algorithms that the key itself is for. `UnsecuredTokens` is Kafka's handler for development, which
believes any token; a listener has it only where its settings name that class.

Reads no clock: `now_s` brings the time. PyJWT checks signature, audience and issuer.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from jwt.types import Options

from barnabas_broker.security.jwks import ALGORITHMS, KeySet
from barnabas_broker.security.oauthbearer import BearerToken, TokenError

TIME_MAX_S: Final = 253_402_300_799
"""The end of the year 9999: what a token may say of times."""

_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's `String.trim` removes. A name that begins with another space is another user's."""

_REASONS: Final[Mapping[type[Exception], str]] = {
    jwt.InvalidSignatureError: "its signature is not that of the key",
    jwt.InvalidAudienceError: "its audience is not sasl.oauthbearer.expected.audience",
    jwt.InvalidIssuerError: "its issuer is not sasl.oauthbearer.expected.issuer",
    jwt.InvalidAlgorithmError: "its algorithm is not one of its key",
}
_OPTIONS: Final[Options] = {
    "require": ["exp", "iat"],
    # `_check_times` does, by the time that it is given.
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedTokens:
    """Checks signed tokens.

    `keys` gives the keys that are known now, `key_missing` is called for a token of another key.
    """

    keys: Callable[[], KeySet | None]
    key_missing: Callable[[], None]
    now_s: Callable[[], float]
    audience: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_s: int = 30
    scope_claim: str = "scope"
    subject_claim: str = "sub"

    def __call__(self, token: str) -> BearerToken:
        """What a token says; raises TokenError."""
        claims = self._verified(token)
        expires_s = _check_times(
            claims, now_s=self.now_s(), skew_s=self.clock_skew_s, issued_at_required=True
        )
        _scopes(claims, self.scope_claim)
        return BearerToken(_subject(claims, self.subject_claim), int(expires_s * 1000))

    def _verified(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise TokenError("its header is malformed") from None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise TokenError("its algorithm is none of " + ", ".join(sorted(ALGORITHMS)))
        if "crit" in header:
            raise TokenError("it has a critical extension, and none is known")
        keys = self.keys()
        if keys is None:
            raise TokenError("the keys of sasl.oauthbearer.jwks.endpoint.url are not known yet")
        key = keys.find(key_id, algorithm)
        if key is None:
            self.key_missing()
            raise TokenError("no key that is known has its key id and algorithm")
        try:
            return jwt.decode(
                token,
                key.public,
                algorithms=sorted(key.algorithms),
                audience=self.audience or None,
                issuer=self.issuer,
                options=_OPTIONS,
            )
        except jwt.MissingRequiredClaimError as error:
            raise TokenError(f"it has no claim {error.claim}") from None
        except jwt.PyJWTError as error:
            raise TokenError(_REASONS.get(type(error), "it is malformed")) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredTokens:
    """Believes tokens without a signature, by the rules of Kafka's handler for them."""

    now_s: Callable[[], float]
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_s: float = 0.0

    def __call__(self, token: str) -> BearerToken:
        """What a token says; raises TokenError."""
        header, claims, signature = _parts(token)
        if header.get("alg") != "none" or signature:
            raise TokenError("it is not an unsecured token")
        user = _subject(claims, self.subject_claim)
        expires_s = _check_times(
            claims, now_s=self.now_s(), skew_s=self.clock_skew_s, issued_at_required=False
        )
        if claims.get("iat") is not None and expires_s <= claims["iat"]:
            raise TokenError("it expires before it was issued")
        missing = set(self.required_scope) - set(_scopes(claims, self.scope_claim))
        if missing:
            scope = f"[{', '.join(self.required_scope)}]"
            raise TokenError(
                "a required scope is missing", status="insufficient_scope", scope=scope
            )
        return BearerToken(user, int(expires_s * 1000))


def _check_times(
    claims: Mapping[str, Any], *, now_s: float, skew_s: float, issued_at_required: bool
) -> float:
    """When a token expires; raises TokenError for one that does not hold now."""
    expires_s = _time(claims, "exp")
    if expires_s is None:
        raise TokenError("it has no claim exp")
    issued_s = _time(claims, "iat")
    if issued_s is None and issued_at_required:
        raise TokenError("it has no claim iat")
    if now_s - skew_s >= expires_s:
        raise TokenError("it has expired")
    for since_s in (issued_s, _time(claims, "nbf")):
        if since_s is not None and since_s > now_s + skew_s:
            raise TokenError("it is not valid yet")
    return expires_s


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # What is no number fails the comparison or the first test, and so does NaN.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= TIME_MAX_S
    ):
        raise TokenError(f"its claim {name} is no time")
    return value


def _subject(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    user = value.strip(_BLANKS) if isinstance(value, str) else ""
    if not user:
        raise TokenError(f"its claim {name} is empty")
    if not _is_unicode(user):
        raise TokenError(f"its claim {name} is malformed")
    return user


def _is_unicode(text: str) -> bool:
    """Whether a text of JSON can be sent and stored: not where it has half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _scopes(claims: Mapping[str, Any], name: str) -> list[str]:
    """The scopes of a token: a text, or a list of texts none of which is there twice."""
    value = claims.get(name)
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    if not all(isinstance(each, str) and each.strip(_BLANKS) for each in found):
        raise TokenError(f"its claim {name} is malformed")
    scopes = [each.strip(_BLANKS) for each in found]
    if len(set(scopes)) != len(scopes):
        raise TokenError(f"its claim {name} is malformed")
    return scopes


def _parts(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """Header, claims and signature, without verifying the last; raises TokenError."""
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenError("it does not have three parts")
    try:
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
    except (ValueError, RecursionError, binascii.Error):
        raise TokenError("it is malformed") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise TokenError("it is malformed")
    return header, claims, parts[2]


def _decoded(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
