"""RenewDelegationToken: another time at which a token expires (KIP-48)."""

from asyncio import Future

from barnabas_broker.server.requests.delegation_token_requests import changed_expiry
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = RenewDelegationTokenResponse


def handle(
    request: RenewDelegationTokenRequest, call: RequestContext
) -> Response | Future[Response]:
    """Have a token expire later, as its owner or a renewer."""
    return changed_expiry(
        call,
        lambda tokens: tokens.renew(
            call.principal, bytes(request.hmac), period_ms=request.renew_period_ms
        ),
        Response,
    )


HANDLER = Handler(ApiKey.RENEW_DELEGATION_TOKEN, VersionRange(0, 2), handle)
