"""ApiVersions: what this broker serves, derived from the handlers that exist (KIP-35, KIP-511)."""

import re

from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

# What KIP-511 allows in the name and version that client software gives of itself.
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    """List the served APIs; version 3 and above must say what software asks."""
    if call.version >= 3 and not (
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=handler.api_key,
                min_version=handler.versions.min,
                max_version=handler.versions.max,
            )
            for handler in call.broker.handlers
        ]
    )


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
