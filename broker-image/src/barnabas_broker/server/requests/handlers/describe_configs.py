"""DescribeConfigs: the settings of topics, brokers and loggers, and where each comes from."""

from collections.abc import Iterable, Sequence
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.configs import ConfigResource, broker_key, resource_of
from barnabas_broker.controller.loggers import logger_levels
from barnabas_broker.controller.topics import validate_name
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings.describe import ConfigEntry, describe_broker, describe_cluster_wide
from barnabas_kafka.settings.topic import describe_topic

# The source of a logger's level (KIP-412).
DYNAMIC_BROKER_LOGGER = 6
CLUSTER_RESOURCES = (
    ConfigResource.BROKER,
    ConfigResource.BROKER_LOGGER,
    ConfigResource.CLIENT_METRICS,
)


def handle(request: DescribeConfigsRequest, call: RequestContext) -> Work[DescribeConfigsResponse]:
    """Answer for each resource; a failure concerns that resource alone.

    But for a type that cannot be described: then each resource is refused, as by Apache.
    """
    resources = yield from _distinct(request.resources)
    refused = _unexpected_type(resources)
    results = yield from each(resources, partial(_result, request, call, refused))
    return DescribeConfigsResponse(results=results)


def _unexpected_type(resources: Iterable[DescribeConfigsResource]) -> KafkaError | None:
    for resource in resources:
        kind = resource_of(resource.resource_type)
        if kind is not ConfigResource.TOPIC and kind not in CLUSTER_RESOURCES:
            reason = f"Unexpected resource type {kind.name} for resource {resource.resource_name}"
            return KafkaError(ErrorCode.INVALID_REQUEST, reason)
    return None


def _distinct(resources: Sequence[DescribeConfigsResource]) -> Work[list[DescribeConfigsResource]]:
    """Each resource once, with all the keys that are asked for wherever it is named."""
    named: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in resources:
        known = named.setdefault((resource.resource_type, resource.resource_name), resource)
        if known is not resource and known.configuration_keys:  # Null and empty both mean all.
            if resource.configuration_keys:
                known.configuration_keys += resource.configuration_keys
            else:
                known.configuration_keys = None
        yield
    return list(named.values())


def _result(
    request: DescribeConfigsRequest,
    call: RequestContext,
    refused: KafkaError | None,
    resource: DescribeConfigsResource,
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        if refused is not None:
            raise refused
        kind = resource_of(resource.resource_type)
        _authorize(kind, resource.resource_name, call)
        entries = _entries(kind, resource.resource_name, request, call)
    except Exception as error:
        found = refusal(error, "DescribeConfigs", resource.resource_name)
        result.error_code, result.error_message = found.code, found.message
        return result
    # Null and empty both mean all.
    wanted = set(resource.configuration_keys or ())
    result.configs = [entry for entry in entries if not wanted or entry.name in wanted]
    return result


def _authorize(kind: ConfigResource, name: str, call: RequestContext) -> None:
    if kind is ConfigResource.TOPIC:
        if not call.allowed(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not call.allowed_on_cluster(AclOperation.DESCRIBE_CONFIGS):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _entries(
    kind: ConfigResource, name: str, request: DescribeConfigsRequest, call: RequestContext
) -> list[DescribeConfigsResourceResult]:
    settings = call.broker.settings
    if kind is ConfigResource.TOPIC:
        validate_name(name)
        topic = call.broker.image.topic(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return _shown(describe_topic(settings, topic.config), request, call)
    if kind is ConfigResource.BROKER:
        if broker_key(name, broker_id=call.broker.id) == "":
            return _shown(describe_cluster_wide(settings), request, call)
        return _shown(describe_broker(settings), request, call)
    if kind is ConfigResource.CLIENT_METRICS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Config type client-metrics is only supported on KRaft clusters"
            if name
            else "Client metrics subscription name must not be empty",
        )
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    broker_key(name, broker_id=call.broker.id)
    return [
        DescribeConfigsResourceResult(name=logger, value=level, config_source=DYNAMIC_BROKER_LOGGER)
        for logger, level in logger_levels().items()
    ]


def _shown(
    entries: Iterable[ConfigEntry], request: DescribeConfigsRequest, call: RequestContext
) -> list[DescribeConfigsResourceResult]:
    return [
        DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            # Version 0 knows of sources only whether it is the default.
            is_default=call.version == 0 and entry.is_default,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=[
                DescribeConfigsSynonym(
                    name=synonym.name, value=synonym.value, source=synonym.source
                )
                for synonym in entry.synonyms
                if request.include_synonyms
            ],
            config_type=entry.type,
            documentation=entry.doc if request.include_documentation else None,
        )
        for entry in entries
    ]


HANDLER = Handler(ApiKey.DESCRIBE_CONFIGS, VersionRange(0, 4), handle, large=True)
