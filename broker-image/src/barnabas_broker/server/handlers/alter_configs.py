"""AlterConfigs: what is sent replaces all settings of a topic or broker."""

from collections import Counter

from barnabas_broker.controller.configs import ConfigChange, ConfigResource, resource_of
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    """Answer for each resource; a failure concerns that resource alone."""
    sent = Counter((each.resource_type, each.resource_name) for each in request.resources)
    return AlterConfigsResponse(
        responses=[
            _answer(
                resource,
                request.validate_only,
                call,
                repeated=sent[resource.resource_type, resource.resource_name] > 1,
            )
            for resource in request.resources
        ]
    )


def _answer(
    resource: AlterConfigsResource, validate_only: bool, call: Call, *, repeated: bool
) -> AlterConfigsResourceResponse:
    kind, name = resource_of(resource.resource_type), resource.resource_name
    try:
        if repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        authorize_alter(kind, name, call)
        changes = [ConfigChange(config.name, config.value) for config in resource.configs]
        outcome = call.broker.controller.alter_configs(
            [ConfigRequest(kind, name, changes)],
            validate_only=validate_only,
            principal=call.principal,
            now_ms=call.now_ms,
        )[0]
    except KafkaError as error:
        outcome = Outcome.refused(name, error)
    return AlterConfigsResourceResponse(
        error_code=outcome.error,
        error_message=outcome.message,
        resource_type=resource.resource_type,
        resource_name=name,
    )


def authorize_alter(kind: ConfigResource, name: str, call: Call) -> None:
    """Raise KafkaError unless the caller may alter the settings of a resource."""
    if kind is ConfigResource.TOPIC:
        if not call.allowed(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif kind in (ConfigResource.BROKER, ConfigResource.BROKER_LOGGER):
        if not call.allowed_on_cluster(AclOperation.ALTER_CONFIGS):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind.name}")


HANDLER = Handler(ApiKey.ALTER_CONFIGS, VersionRange(0, 2), handle)
