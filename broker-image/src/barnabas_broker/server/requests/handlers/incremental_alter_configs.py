"""IncrementalAlterConfigs: single settings are set, deleted, added to or taken from (KIP-339)."""

from asyncio import Future
from collections import Counter

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.configs import (
    ConfigChange,
    ConfigResource,
    broker_key,
    check_changes,
    resource_of,
)
from barnabas_broker.controller.loggers import alter_levels
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.handlers.alter_configs import authorize_alter
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


def handle(
    request: IncrementalAlterConfigsRequest, call: RequestContext
) -> Work[Future[IncrementalAlterConfigsResponse]]:
    """Answer for each resource; a failure concerns that resource alone."""
    sent = Counter((each.resource_type, each.resource_name) for each in request.resources)
    done_here: dict[int, Outcome] = {}
    asked: dict[int, ConfigRequest] = {}
    for index, resource in enumerate(request.resources):
        kind, name = resource_of(resource.resource_type), resource.resource_name
        changes = [
            ConfigChange(config.name, config.value, config.config_operation)
            for config in resource.configs
        ]
        repeated = sent[resource.resource_type, name] > 1
        try:
            authorize_alter(resource.resource_type, name, call, repeated=repeated)
            if kind is ConfigResource.BROKER_LOGGER:
                done_here[index] = _alter_loggers(name, changes, request.validate_only, call)
            else:
                asked[index] = ConfigRequest(kind, name, changes)
        except Exception as error:
            refused = refusal(error, "IncrementalAlterConfigs", name)
            done_here[index] = Outcome.refused(name, refused)
        yield

    def answer(outcomes: list[Outcome]) -> IncrementalAlterConfigsResponse:
        done = done_here | dict(zip(asked, outcomes, strict=True))
        return IncrementalAlterConfigsResponse(
            responses=[_answer(each, done[i]) for i, each in enumerate(request.resources)]
        )

    return call.ask_controller(
        lambda controller: controller.incremental_alter_configs(
            list(asked.values()),
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


def _alter_loggers(
    name: str, changes: list[ConfigChange], validate_only: bool, call: RequestContext
) -> Outcome:
    check_changes(changes)
    if broker_key(name, broker_id=call.broker.id) == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    alter_levels(changes, validate_only=validate_only)
    return Outcome(name)


HANDLER = Handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, VersionRange(0, 1), handle, large=True)
