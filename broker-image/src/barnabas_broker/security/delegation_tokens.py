"""Delegation tokens (KIP-48): their fields, their authorization, and logins with them.

A token's HMAC is the secret that its holder authenticates with: by SCRAM, where the token's id is
the user name, the HMAC in base64 is the password, and the extension `tokenauth=true` says so. The
principal is the token's owner. Every broker works the HMAC out of the id and of
`delegation.token.secret.key`, as Kafka's DelegationTokenManager does.

Reads no clock and does no I/O. Changes are published whole, so that any thread may read.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from barnabas_broker.security.principals import Principal
from barnabas_broker.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism
from barnabas_kafka.errors import ErrorCode, KafkaError

TOKENS_MAX: Final = 10_000
"""More are not issued. Those that other brokers have issued are known all the same."""

TOKENS_OF_OWNER_MAX: Final = 1_000
"""More are not issued for one owner: one owner cannot use up the limit for all."""

RENEWERS_MAX: Final = 100
PRINCIPAL_CHARACTERS_MAX: Final = 1000
TIME_MAX_MS: Final = 2**63 - 1
_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class TokenInformation:
    """What is known of a token, but for its HMAC."""

    id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_at_ms: int
    expires_at_ms: int
    max_at_ms: int

    def is_of(self, principal: Principal) -> bool:
        """Whether the principal owns, has requested or may renew it."""
        return principal == self.requester or self.is_renewed_by(principal)

    def is_renewed_by(self, principal: Principal) -> bool:
        """Whether the principal may renew and expire it."""
        return principal == self.owner or principal in self.renewers

    def has_expired(self, now_ms: int) -> bool:
        """Whether it is good for nothing any more."""
        return self.max_at_ms < now_ms or self.expires_at_ms < now_ms


@dataclass(frozen=True, slots=True)
class TokenRules:
    """How long tokens are good."""

    max_lifetime_ms: int
    expiry_time_ms: int

    def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: tuple[Principal, ...],
        *,
        lifetime_ms: int,
        now_ms: int,
    ) -> TokenInformation:
        """A new token with a random id. Raises KafkaError for one that would be too large."""
        principals = (owner, *renewers)
        if len(renewers) > RENEWERS_MAX or any(
            len(str(each)) > PRINCIPAL_CHARACTERS_MAX for each in principals
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "too many renewers, or too long names")
        longest_ms = self.max_lifetime_ms
        life_ms = longest_ms if lifetime_ms <= 0 else min(lifetime_ms, longest_ms)
        max_at_ms = min(now_ms + life_ms, TIME_MAX_MS)
        return TokenInformation(
            id=_base64_url(secrets.token_bytes(_ID_BYTES)),
            owner=owner,
            requester=requester,
            renewers=renewers,
            issued_at_ms=now_ms,
            expires_at_ms=min(max_at_ms, now_ms + self.expiry_time_ms),
            max_at_ms=max_at_ms,
        )

    def renew(
        self, token: TokenInformation, principal: Principal, *, period_ms: int, now_ms: int
    ) -> TokenInformation:
        """The token with a later, or an earlier, expiry. Raises KafkaError."""
        _check_renewer(token, principal)
        _check_not_expired(token, now_ms)
        period_ms = self.expiry_time_ms if period_ms < 0 else period_ms
        return replace(token, expires_at_ms=min(token.max_at_ms, now_ms + period_ms))

    def expire(
        self, token: TokenInformation, principal: Principal, *, period_ms: int, now_ms: int
    ) -> TokenInformation | None:
        """The token as it expires later; None where it is to be removed now. Raises KafkaError."""
        _check_renewer(token, principal)
        if period_ms < 0:
            return None
        _check_not_expired(token, now_ms)
        return replace(token, expires_at_ms=min(token.max_at_ms, now_ms + period_ms))


@dataclass(frozen=True, slots=True)
class TokenCredential:
    """The credential and the principal of a client that authenticates with a token."""

    owner: str
    credential: ScramCredential = field(repr=False)
    expires_at_ms: int


class TokenCache:
    """The tokens of the cluster, as far as this broker knows them."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        # Salts last for the process, as those of users that do not exist do.
        self._salt_key = secrets.token_bytes(32)
        self.tokens: dict[str, TokenInformation] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}

    def publish(self, changes: Mapping[str, TokenInformation | None]) -> None:
        """Know these tokens by their ids; None for those that are gone."""
        tokens, by_hmac = dict(self.tokens), dict(self._by_hmac)
        for token_id, token in changes.items():
            if token is not None:
                tokens[token_id] = token
                by_hmac[self.hmac_of(token_id)] = token_id
            elif tokens.pop(token_id, None) is not None:
                del by_hmac[self.hmac_of(token_id)]
        self.tokens, self._by_hmac = tokens, by_hmac
        for mechanism in ScramMechanism:
            for token_id in changes:
                if token_id not in tokens:
                    self._credentials.pop((token_id, mechanism), None)

    def hmac_of(self, token_id: str) -> bytes:
        """The secret of a token."""
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def id_of(self, token_hmac: bytes) -> str | None:
        """The token that has this HMAC."""
        return self._by_hmac.get(token_hmac)

    def credential(
        self, mechanism: ScramMechanism, token_id: str, *, now_ms: int
    ) -> TokenCredential | None:
        """What to authenticate a client by that names this token; None where it is not good."""
        token = self.tokens.get(token_id)
        if token is None or token.has_expired(now_ms):
            return None
        found = self._credentials.get((token_id, mechanism))
        if found is None:
            # Once for each token: milliseconds that a client could else ask for again and again.
            found = self._credentials[token_id, mechanism] = self._salted(mechanism, token_id)
        return TokenCredential(token.owner.name, found, token.expires_at_ms)

    def _salted(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        password = base64.b64encode(self.hmac_of(token_id))
        salt = hmac.digest(self._salt_key, token_id.encode(), "sha256")[:20]
        salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, ITERATIONS_MIN)
        return ScramCredential.from_salted_password(mechanism, salted, salt, ITERATIONS_MIN)


def _check_renewer(token: TokenInformation, principal: Principal) -> None:
    if not token.is_renewed_by(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _check_not_expired(token: TokenInformation, now_ms: int) -> None:
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _base64_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
