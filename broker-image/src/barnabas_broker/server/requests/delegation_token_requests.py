"""Checks that the four APIs of delegation tokens share (KIP-48)."""

from asyncio import Future
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from barnabas_kafka.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from barnabas_kafka.settings.listeners import SecurityProtocol

if TYPE_CHECKING:  # Not loaded where there is no secret key.
    from barnabas_broker.server.control.delegation_token_manager import DelegationTokenManager

Response = TypeVar("Response", ExpireDelegationTokenResponse, RenewDelegationTokenResponse)

REQUESTERS_SINCE: Final = 3
"""The first version of CreateDelegationToken and DescribeDelegationToken with the requester."""

NO_TIME: Final = -1
"""What an answer without a token says of times."""


def check_allowed(call: RequestContext) -> None:
    """Raise KafkaError where tokens are not asked for: `KafkaApis.allowTokenRequests`.

    Not in plain text, not by an unauthenticated client, and not by one that
    authenticated with a token itself.
    """
    listeners = call.broker.settings.listeners
    protocol = next((each.protocol for each in listeners if each.name == call.listener), None)
    anonymous = protocol is SecurityProtocol.SSL and call.principal == ANONYMOUS
    unknown = protocol in (None, SecurityProtocol.PLAINTEXT)
    if unknown or anonymous or call.principal.token_authenticated:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def manager(call: RequestContext) -> "DelegationTokenManager":
    """The broker's tokens; raises KafkaError where there is no secret key."""
    tokens = call.broker.security.tokens
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def changed_expiry(
    call: RequestContext,
    change: "Callable[[DelegationTokenManager], int | Future[int]]",
    response: type[Response],
) -> Response | Future[Response]:
    """Change when a token expires, and answer with that time."""

    def refuse(error: KafkaError) -> Response:
        return response(error_code=error.code, expiry_timestamp_ms=NO_TIME)

    try:
        check_allowed(call)
        changed = change(manager(call))
    except KafkaError as error:
        return refuse(error)
    return then(changed, lambda until_ms: response(expiry_timestamp_ms=until_ms), refuse)
