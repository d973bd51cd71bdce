"""DescribeDelegationToken: the tokens that a client may see, with their HMACs (KIP-48, KIP-373)."""

from typing import TYPE_CHECKING

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.delegation_token_requests import (
    REQUESTERS_SINCE,
    check_allowed,
    manager,
)
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

if TYPE_CHECKING:
    from barnabas_broker.security.delegation_tokens import TokenInformation

Response = DescribeDelegationTokenResponse


def handle(request: DescribeDelegationTokenRequest, call: RequestContext) -> Work[Response]:
    """Describe the client's own tokens, and those that it may describe."""
    try:
        check_allowed(call)
        cache = manager(call).cache
    except KafkaError as error:
        return Response(error_code=error.code)
    owners = request.owners
    wanted = None
    if owners is not None:
        wanted = {Principal(each.principal_type, each.principal_name) for each in owners}
    described = []
    for token in cache.tokens.values():
        yield
        if _is_wanted(token, wanted) and _may_see(token, call):
            described.append(_described(token, cache.hmac_of(token.id), call.version))
    return Response(tokens=described)


def _is_wanted(token: "TokenInformation", wanted: set[Principal] | None) -> bool:
    if wanted is None:
        return True
    return not wanted.isdisjoint((token.owner, token.requester, *token.renewers))


def _may_see(token: "TokenInformation", call: RequestContext) -> bool:
    return (
        token.is_of(call.principal)
        or call.allowed(
            AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id, audited=False
        )
        or call.allowed(
            AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner), audited=False
        )
    )


def _described(
    token: "TokenInformation", token_hmac: bytes, version: int
) -> DescribedDelegationToken:
    names_requester = version >= REQUESTERS_SINCE
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind if names_requester else "",
        token_requester_principal_name=token.requester.name if names_requester else "",
        issue_timestamp=token.issued_at_ms,
        expiry_timestamp=token.expires_at_ms,
        max_timestamp=token.max_at_ms,
        token_id=token.id,
        hmac=token_hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=it.kind, principal_name=it.name)
            for it in token.renewers
        ],
    )


HANDLER = Handler(ApiKey.DESCRIBE_DELEGATION_TOKEN, VersionRange(0, 3), handle)
