"""ExpireDelegationToken: an earlier end of a token, or its end at once (KIP-48)."""

from asyncio import Future

from barnabas_broker.server.requests.delegation_token_requests import changed_expiry
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = ExpireDelegationTokenResponse


def handle(
    request: ExpireDelegationTokenRequest, call: RequestContext
) -> Response | Future[Response]:
    """Have a token expire, at once where the period is negative."""
    return changed_expiry(
        call,
        lambda tokens: tokens.expire(
            call.principal, bytes(request.hmac), period_ms=request.expiry_time_period_ms
        ),
        Response,
    )


HANDLER = Handler(ApiKey.EXPIRE_DELEGATION_TOKEN, VersionRange(0, 2), handle)
