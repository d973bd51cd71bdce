"""CreateDelegationToken: a token for the client, or for another user (KIP-48, KIP-373)."""

from asyncio import Future
from typing import TYPE_CHECKING

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.principals import USER, Principal
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.delegation_token_requests import (
    NO_TIME,
    REQUESTERS_SINCE,
    check_allowed,
    manager,
)
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

if TYPE_CHECKING:
    from barnabas_broker.security.delegation_tokens import TokenInformation

Response = CreateDelegationTokenResponse


def handle(
    request: CreateDelegationTokenRequest, call: RequestContext
) -> Response | Future[Response]:
    """Issue a token, and answer when this broker accepts it."""
    owner = call.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)

    def refuse(error: KafkaError) -> Response:
        response = _response(owner, call)
        response.error_code = error.code
        return response

    try:
        renewers = _check(request, call, owner)
        tokens = manager(call)
    except KafkaError as error:
        return refuse(error)

    def answer(token: "TokenInformation") -> Response:
        response = _response(owner, call)
        response.issue_timestamp_ms = token.issued_at_ms
        response.expiry_timestamp_ms = token.expires_at_ms
        response.max_timestamp_ms = token.max_at_ms
        response.token_id = token.id
        response.hmac = tokens.cache.hmac_of(token.id)
        return response

    lifetime_ms = request.max_lifetime_ms
    created = tokens.create(owner, call.principal, renewers, lifetime_ms=lifetime_ms)
    return then(created, answer, refuse)


def _check(
    request: CreateDelegationTokenRequest, call: RequestContext, owner: Principal
) -> tuple[Principal, ...]:
    """The renewers; raises KafkaError."""
    check_allowed(call)
    if owner != call.principal and not call.allowed(
        AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    renewers = tuple(Principal(it.principal_type, it.principal_name) for it in request.renewers)
    if any(each.kind != USER for each in renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    return renewers


def _response(owner: Principal, call: RequestContext) -> Response:
    names_requester = call.version >= REQUESTERS_SINCE
    return Response(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=call.principal.kind if names_requester else "",
        token_requester_principal_name=call.principal.name if names_requester else "",
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


HANDLER = Handler(ApiKey.CREATE_DELEGATION_TOKEN, VersionRange(0, 3), handle)
