"""ApiVersions: what this broker serves, derived from the handlers that exist (KIP-35, KIP-511)."""

import re

from barnabas_broker.coordinator.transaction.transaction import EPOCH_PER_TRANSACTION
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

# What KIP-511 allows in the name and version that client software gives of itself.
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

ZERO_SINCE = 4

TRANSACTION_VERSION = "transaction.version"
"""The feature whose level is the transaction protocol: clients speak 2 only where it says so."""

_TRANSACTION_VERSIONS = SupportedFeatureKey(
    name=TRANSACTION_VERSION, min_version=0, max_version=EPOCH_PER_TRANSACTION
)


def handle(request: ApiVersionsRequest, call: RequestContext) -> ApiVersionsResponse:
    """List the served APIs and features; from version 3 on clients must name their software."""
    if call.version >= 3 and not (
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        # Clients of old refuse features whose least version is 0 (KIP-1022).
        supported_features=[_TRANSACTION_VERSIONS] if call.version >= ZERO_SINCE else [],
        finalized_features_epoch=_features_epoch(call),
        finalized_features=_finalized(call),
        api_keys=[
            ApiVersion(
                api_key=handler.api_key,
                min_version=handler.versions.min,
                max_version=handler.versions.max,
            )
            for handler in call.broker.handlers
            if handler.offered is None or handler.offered(call.broker)
        ],
    )


def _features_epoch(call: RequestContext) -> int:
    """Clients go by the features with the largest epoch that they have seen.

    What turns a feature off is a broker that registers, and registrations have growing epochs.
    """
    return max([0, *(broker.epoch for broker in call.broker.image.brokers.values())])


def _finalized(call: RequestContext) -> list[FinalizedFeatureKey]:
    """The features in force: nothing in a cluster that looks like one of Kafka 3."""
    level = call.broker.transactions.protocol
    if not level:
        return []
    name = TRANSACTION_VERSION
    return [FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)]


def unsupported_version_response(versions: VersionRange) -> ApiVersionsResponse:
    """The version 0 answer to an ApiVersions request that is newer than this broker."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersion(
                api_key=ApiKey.API_VERSIONS,
                min_version=versions.min,
                max_version=versions.max,
            )
        ],
    )


HANDLER = Handler(ApiKey.API_VERSIONS, VersionRange(0, 4), handle)
