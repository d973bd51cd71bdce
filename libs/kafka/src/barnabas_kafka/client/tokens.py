"""Operations on delegation tokens (KIP-48): issue, show, renew and expire them.

Brokers answer them on connections that are authenticated, and not by a token.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from barnabas_kafka.client.cluster import ANY_BROKER
from barnabas_kafka.client.errors import check
from barnabas_kafka.client.operation import ONLY, Ask, Operation, read_single, single
from barnabas_kafka.protocol.messages import create_delegation_token as created
from barnabas_kafka.protocol.messages import describe_delegation_token as described
from barnabas_kafka.protocol.messages import expire_delegation_token as expired
from barnabas_kafka.protocol.messages import renew_delegation_token as renewed
from barnabas_kafka.protocol.registry import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token; principals are written `User:alice`, times are milliseconds since the epoch."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...] = ()
    issued_at_ms: int
    expires_at_ms: int
    max_at_ms: int


def create_delegation_token(
    renewers: Iterable[str] = (), *, owner: str | None = None, max_lifetime_ms: int = -1
) -> Operation[DelegationToken]:
    """Issue a token, for the client itself unless another owner is named (KIP-373)."""
    may_renew = tuple(renewers)

    def request(ask: Ask[Any]) -> created.CreateDelegationTokenRequest:
        kind, name = ("", "") if owner is None else _principal(owner)
        parts = map(_principal, may_renew)
        return created.CreateDelegationTokenRequest(
            owner_principal_type=kind,
            owner_principal_name=name,
            renewers=[
                created.CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in parts
            ],
            max_lifetime_ms=max_lifetime_ms,
        )

    def read(response: created.CreateDelegationTokenResponse) -> DelegationToken:
        check(response.error_code, None)
        return DelegationToken(
            token_id=response.token_id,
            hmac=bytes(response.hmac),
            owner=_text(response.principal_type, response.principal_name),
            requester=_requester(response),
            renewers=may_renew,
            issued_at_ms=response.issue_timestamp_ms,
            expires_at_ms=response.expiry_timestamp_ms,
            max_at_ms=response.max_timestamp_ms,
        )

    return Operation(
        name="create delegation token",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.CREATE_DELEGATION_TOKEN,
        read=read_single(read),
        finish=single,
    )


def describe_delegation_tokens(
    owners: Iterable[str] | None = None,
) -> Operation[tuple[DelegationToken, ...]]:
    """The tokens of these owners, or of all, that the client may see."""
    wanted = None if owners is None else [_principal(each) for each in owners]

    def request(ask: Ask[Any]) -> described.DescribeDelegationTokenRequest:
        asked = wanted
        return described.DescribeDelegationTokenRequest(
            owners=None
            if asked is None
            else [
                described.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
                for kind, name in asked
            ]
        )

    def read(response: described.DescribeDelegationTokenResponse) -> tuple[DelegationToken, ...]:
        check(response.error_code, None)
        return tuple(
            DelegationToken(
                token_id=each.token_id,
                hmac=bytes(each.hmac),
                owner=_text(each.principal_type, each.principal_name),
                requester=_requester(each),
                renewers=tuple(_text(it.principal_type, it.principal_name) for it in each.renewers),
                issued_at_ms=each.issue_timestamp,
                expires_at_ms=each.expiry_timestamp,
                max_at_ms=each.max_timestamp,
            )
            for each in response.tokens
        )

    return Operation(
        name="describe delegation tokens",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN,
        read=read_single(read),
        finish=single,
    )


def renew_delegation_token(hmac: bytes, period_ms: int = -1) -> Operation[int]:
    """Have a token expire later, in the broker's period by default; when it expires then."""

    def request(ask: Ask[Any]) -> renewed.RenewDelegationTokenRequest:
        return renewed.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

    return Operation(
        name="renew delegation token",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.RENEW_DELEGATION_TOKEN,
        read=read_single(_expiry),
        finish=single,
    )


def expire_delegation_token(hmac: bytes, period_ms: int = -1) -> Operation[int]:
    """Have a token expire in that time, now by default; when it expires then."""

    def request(ask: Ask[Any]) -> expired.ExpireDelegationTokenRequest:
        return expired.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)

    return Operation(
        name="expire delegation token",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.EXPIRE_DELEGATION_TOKEN,
        read=read_single(_expiry),
        finish=single,
    )


def _expiry(
    response: renewed.RenewDelegationTokenResponse | expired.ExpireDelegationTokenResponse,
) -> int:
    check(response.error_code, None)
    return response.expiry_timestamp_ms


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise ValueError(f"a principal is written Kind:name, not {text!r}")
    return kind, name


def _text(kind: str, name: str) -> str:
    return f"{kind}:{name}"


def _requester(token: Any) -> str:
    """The requester of a token: the owner, where the broker is too old to return it."""
    if token.token_requester_principal_name:
        kind = token.token_requester_principal_type
        return _text(kind, token.token_requester_principal_name)
    return _text(token.principal_type, token.principal_name)
