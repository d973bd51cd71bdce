"""IncrementalAlterConfigs: single settings are set, deleted, added to or taken from (KIP-339)."""

from collections import Counter

from barnabas_broker.controller.configs import (
    ConfigChange,
    ConfigResource,
    broker_key,
    check_changes,
    resource_of,
)
from barnabas_broker.controller.loggers import alter_levels
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler, VersionRange
from barnabas_broker.server.handlers.alter_configs import authorize_alter
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(request: IncrementalAlterConfigsRequest, call: Call) -> IncrementalAlterConfigsResponse:
    """Answer for each resource; a failure concerns that resource alone."""
    sent = Counter((each.resource_type, each.resource_name) for each in request.resources)
    return IncrementalAlterConfigsResponse(
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
    changes = [
        ConfigChange(config.name, config.value, config.config_operation)
        for config in resource.configs
    ]
    try:
        if repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        authorize_alter(kind, name, call)
        if kind is ConfigResource.BROKER_LOGGER:
            outcome = _alter_loggers(name, changes, validate_only, call)
        else:
            outcome = call.broker.controller.incremental_alter_configs(
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


def _alter_loggers(
    name: str, changes: list[ConfigChange], validate_only: bool, call: Call
) -> Outcome:
    check_changes(changes)
    if broker_key(name, broker_id=call.broker.id) == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    alter_levels(changes, validate_only=validate_only)
    return Outcome(name)


HANDLER = Handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, VersionRange(0, 1), handle)
