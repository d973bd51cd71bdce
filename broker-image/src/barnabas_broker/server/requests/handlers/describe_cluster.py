"""DescribeCluster: brokers, controller and cluster id, without any topics (KIP-700)."""

from asyncio import Future

from barnabas_broker.cluster.image import NO_CONTROLLER
from barnabas_broker.cluster.views import live_endpoints
from barnabas_broker.security.acls import (
    CLUSTER_NAME,
    OPERATIONS_NOT_REQUESTED,
    AclOperation,
    ResourceType,
)
from barnabas_broker.server.requests.first_metadata import after_first_metadata
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas_kafka.protocol.registry import ApiKey

# What an endpoint is asked about (KIP-919); a broker knows brokers only.
ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2


def handle(
    request: DescribeClusterRequest, call: RequestContext
) -> DescribeClusterResponse | Future[DescribeClusterResponse]:
    """Answer through the listener that the request came in on."""
    waiting = after_first_metadata(call, lambda: _answer(request, call))
    return waiting if waiting is not None else _answer(request, call)


def _answer(request: DescribeClusterRequest, call: RequestContext) -> DescribeClusterResponse:
    if request.endpoint_type != ENDPOINT_BROKERS:
        return _wrong_endpoint(request.endpoint_type, call.version)
    image = call.broker.image
    if image.controller_id == NO_CONTROLLER:
        message = "This broker has not received metadata from the controller yet."
        return DescribeClusterResponse(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE, error_message=message
        )
    endpoints = live_endpoints(image, call.listener)
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id if image.controller_id in endpoints else NO_CONTROLLER,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker,
                host=endpoint.host,
                port=endpoint.port,
                rack=image.brokers[broker].rack,
            )
            for broker, endpoint in sorted(endpoints.items())
        ],
        cluster_authorized_operations=_operations(request, call),
    )


def _wrong_endpoint(endpoint_type: int, version: int) -> DescribeClusterResponse:
    if endpoint_type == ENDPOINT_CONTROLLERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "The request was sent to a broker, but asks about controllers."
    else:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    if version == 0:
        code = ErrorCode.INVALID_REQUEST
    return DescribeClusterResponse(error_code=code, error_message=message)


def _operations(request: DescribeClusterRequest, call: RequestContext) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_REQUESTED
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return 0
    return call.allowed_operations(ResourceType.CLUSTER, CLUSTER_NAME)


HANDLER = Handler(ApiKey.DESCRIBE_CLUSTER, VersionRange(0, 1), handle)
