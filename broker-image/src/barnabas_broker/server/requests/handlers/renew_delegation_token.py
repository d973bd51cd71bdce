"""RenewDelegationToken: another time at which a token expires (KIP-48)."""

from asyncio import Future

from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.delegation_token_requests import (
    NO_TIME,
    check_allowed,
    manager,
)
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import KafkaError
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
    try:
        check_allowed(call)
        changed = manager(call).renew(
            call.principal, bytes(request.hmac), period_ms=request.renew_period_ms
        )
    except KafkaError as error:
        return _refuse(error)
    return then(changed, _answer, _refuse)


def _answer(until_ms: int) -> Response:
    return Response(expiry_timestamp_ms=until_ms)


def _refuse(error: KafkaError) -> Response:
    return Response(error_code=error.code, expiry_timestamp_ms=NO_TIME)


HANDLER = Handler(ApiKey.RENEW_DELEGATION_TOKEN, VersionRange(0, 2), handle)
