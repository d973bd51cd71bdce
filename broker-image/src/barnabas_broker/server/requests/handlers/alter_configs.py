"""AlterConfigs: what is sent replaces all settings of a topic or broker."""

from asyncio import Future
from collections import Counter

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.configs import ConfigChange, ConfigResource, resource_of
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(
    request: AlterConfigsRequest, call: RequestContext
) -> Work[Future[AlterConfigsResponse]]:
    """Answer for each resource; a failure concerns that resource alone."""
    sent = Counter((each.resource_type, each.resource_name) for each in request.resources)
    refused: dict[int, Outcome] = {}
    granted: dict[int, ConfigRequest] = {}
    for index, resource in enumerate(request.resources):
        yield
        kind, name = resource_of(resource.resource_type), resource.resource_name
        repeated = sent[resource.resource_type, name] > 1
        try:
            authorize_alter(resource.resource_type, name, call, repeated=repeated)
            if kind is ConfigResource.BROKER_LOGGER:  # That is for IncrementalAlterConfigs.
                raise unknown_type(resource.resource_type)
        except Exception as error:
            refused[index] = Outcome.refused(name, refusal(error, "AlterConfigs", name))
            continue
        changes = [ConfigChange(config.name, config.value) for config in resource.configs]
        granted[index] = ConfigRequest(kind, name, changes)

    def answer(outcomes: list[Outcome]) -> AlterConfigsResponse:
        done = refused | dict(zip(granted, outcomes, strict=True))
        return AlterConfigsResponse(
            responses=[_answer(each, done[i]) for i, each in enumerate(request.resources)]
        )

    return call.ask_controller(
        lambda controller: controller.alter_configs(
            list(granted.values()),
            validate_only=request.validate_only,
            principal=call.principal,
            now_ms=call.now_ms,
        ),
        answer,
    )


def _answer(resource: AlterConfigsResource, outcome: Outcome) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=outcome.error,
        error_message=outcome.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def authorize_alter(number: int, name: str, call: RequestContext, *, repeated: bool) -> None:
    """Raise KafkaError unless the caller may alter a resource, which the request names once."""
    if repeated:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    kind = resource_of(number)
    if kind is ConfigResource.TOPIC:
        if not call.allowed(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif kind in (ConfigResource.BROKER, ConfigResource.BROKER_LOGGER):
        if not call.allowed_on_cluster(AclOperation.ALTER_CONFIGS):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    elif kind is not ConfigResource.CLIENT_METRICS:  # The controller refuses those.
        raise unknown_type(number)


def unknown_type(number: int) -> KafkaError:
    """The refusal of a type of resources that this API does not alter."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {number}")


HANDLER = Handler(ApiKey.ALTER_CONFIGS, VersionRange(0, 2), handle, large=True)
