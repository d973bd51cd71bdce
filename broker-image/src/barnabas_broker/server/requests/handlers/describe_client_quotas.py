"""DescribeClientQuotas: the quotas that match a filter (KIP-546)."""

from barnabas_broker.controller.quota_changes import Component, Match, entity_filter, parts_of
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: DescribeClientQuotasRequest, call: RequestContext
) -> Work[DescribeClientQuotasResponse]:
    """Answer with all that match, or with an error instead."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE_CONFIGS):
        return _refused(
            KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        )
    try:
        components = [_component(each) for each in request.components]
        is_asked = entity_filter(components, strict=request.strict)
    except KafkaError as error:
        return _refused(error)
    entries = []
    for entity, quotas in call.broker.image.quota_configs.items():
        if is_asked(entity):
            entries.append(
                EntryData(
                    entity=[EntityData(entity_type=k, entity_name=n) for k, n in parts_of(entity)],
                    values=[ValueData(key=key, value=value) for key, value in quotas.items()],
                )
            )
        yield
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _component(sent: ComponentData) -> Component:
    """Raises KafkaError for a comparison that there is none of, or that lacks a name."""
    if sent.match_type not in tuple(Match) or (
        sent.match_type == Match.EXACT and sent.match is None
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Component(sent.entity_type, sent.match_type, sent.match)


def _refused(error: KafkaError) -> DescribeClientQuotasResponse:
    unforeseen = error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=None if unforeseen else error.message, entries=None
    )


HANDLER = Handler(ApiKey.DESCRIBE_CLIENT_QUOTAS, VersionRange(0, 1), handle)
