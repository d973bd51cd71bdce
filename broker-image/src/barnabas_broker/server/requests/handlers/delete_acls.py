"""DeleteAcls: rules go that match filters (Kafka's `AclApis`, `AclAuthorizer.deleteAcls`)."""

from asyncio import Future
from functools import partial

from barnabas_broker.security.acls import AclBinding, AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.acl_requests import filter_of
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = DeleteAclsResponse
Answer = Response | Work[Response] | Future[Work[Response]]
Deleted = dict[AclBinding, KafkaError | None]


def handle(request: DeleteAclsRequest, call: RequestContext) -> Work[Answer]:
    """Delete, and answer with what was deleted when this broker goes by it."""
    if not call.allowed_on_cluster(AclOperation.ALTER):
        return (yield from _all(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
    acls = call.broker.acls
    if acls is None:
        code = ErrorCode.SECURITY_DISABLED
        return (yield from _all(request, KafkaError(code, "No Authorizer is configured.")))
    filters = yield from each(request.filters, filter_of)

    def answer(deleted: list[Deleted]) -> Work[Response]:
        return Response(filter_results=(yield from each(deleted, _result)))

    return then(acls.delete(filters), answer, partial(_all, request))


def _all(request: DeleteAclsRequest, error: KafkaError) -> Work[Response]:
    refusal = DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
    return Response(filter_results=(yield from each(request.filters, lambda _: refusal)))


def _result(deleted: Deleted) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[_matching(binding, error) for binding, error in deleted.items()],
    )


def _matching(binding: AclBinding, error: KafkaError | None) -> DeleteAclsMatchingAcl:
    pattern, entry = binding
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=pattern.type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


HANDLER = Handler(ApiKey.DELETE_ACLS, VersionRange(0, 3), handle, large=True)
