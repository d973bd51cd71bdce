"""CreateAcls (Kafka's `AclApis`, `AclAuthorizer.createAcls`)."""

from asyncio import Future
from functools import partial

from barnabas_broker.security.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    from_code,
)
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests.handler import Handler, UnanswerableError
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = CreateAclsResponse
Answer = Response | Work[Response] | Future[Work[Response]]


def handle(request: CreateAclsRequest, call: RequestContext) -> Work[Answer]:
    """Add what can be added, and answer when this broker goes by it."""
    if not call.allowed_on_cluster(AclOperation.ALTER):
        return (yield from _all(request, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
    acls = call.broker.acls
    if acls is None:
        code = ErrorCode.SECURITY_DISABLED
        return (yield from _all(request, KafkaError(code, "No Authorizer is configured.")))
    judged = yield from each(request.creations, _judged)
    bindings = [binding for binding in judged if isinstance(binding, AclBinding)]

    def answer(failures: list[KafkaError | None]) -> Work[Response]:
        remaining = iter(failures)
        done = (
            next(remaining) if isinstance(binding, AclBinding) else binding for binding in judged
        )
        return Response(results=(yield from each(done, _result)))

    return then(acls.create(bindings), answer, partial(_all, request))


def _all(request: CreateAclsRequest, error: KafkaError) -> Work[Response]:
    results = yield from each(request.creations, lambda _: _result(error))
    return Response(results=results)


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=error.code, error_message=error.message)


def _judged(asked: AclCreation) -> AclBinding | KafkaError:
    """The rule that is asked for, or why there is none. Raises UnanswerableError."""
    codes = (
        asked.resource_type,
        asked.resource_pattern_type,
        asked.operation,
        asked.permission_type,
    )
    if 0 in codes:
        raise UnanswerableError("CreateAcls names something unknown")
    binding = AclBinding(
        ResourcePattern(
            from_code(ResourceType, asked.resource_type),
            asked.resource_name,
            from_code(PatternType, asked.resource_pattern_type),
        ),
        AccessControlEntry(
            asked.principal,
            asked.host,
            from_code(AclOperation, asked.operation),
            from_code(Permission, asked.permission_type),
        ),
    )
    fault = _fault(binding)
    return binding if fault is None else KafkaError(ErrorCode.INVALID_REQUEST, fault)


def _fault(binding: AclBinding) -> str | None:
    pattern, entry = binding
    if pattern.type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not pattern.name:
        return "Invalid empty resource name"
    specific = (
        pattern.type > ResourceType.ANY
        and pattern.pattern in (PatternType.LITERAL, PatternType.PREFIXED)
        and entry.operation > AclOperation.ANY
        and entry.permission > Permission.ANY
    )
    if not specific or "/" in pattern.name:
        return "Failed to create ACL"
    try:
        Principal.parse(entry.principal)
    except ValueError as error:
        return str(error)
    return None


HANDLER = Handler(ApiKey.CREATE_ACLS, VersionRange(0, 3), handle, large=True)
