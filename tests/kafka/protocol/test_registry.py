"""Tests of barnabas_kafka.protocol.registry."""

import pytest

from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_kafka.protocol.registry import ApiKey, VersionRange, api


def test_an_api() -> None:
    """What the registry tells about Metadata."""
    metadata = api(3)
    assert metadata.key is ApiKey.METADATA
    assert metadata.name == "Metadata"
    assert metadata.request is MetadataRequest
    assert metadata.response is MetadataResponse
    assert metadata.versions == VersionRange(0, 13)
    assert metadata.first_flexible == 9


@pytest.mark.parametrize("key", list(ApiKey))
def test_both_directions_agree(key: ApiKey) -> None:
    """Request and response of an API have its key, the same versions and the same encoding."""
    known = api(key)
    for message in (known.request, known.response):
        assert message.api_key == key
        assert message.versions == known.versions
        assert message.flexible == known.request.flexible
    assert known.versions.min == 0


@pytest.mark.parametrize(
    ("key", "version", "request_header", "response_header"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, 0, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 1, 1, 0),
        (ApiKey.CONTROLLED_SHUTDOWN, 3, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.OFFSET_DELETE, 0, 1, 0),
        (ApiKey.DESCRIBE_CLUSTER, 0, 2, 1),
    ],
)
def test_header_versions(
    key: ApiKey, version: int, request_header: int, response_header: int
) -> None:
    """Headers follow the encoding of the body, but for ControlledShutdown 0 and ApiVersions."""
    assert api(key).request_header_version(version) == request_header
    assert api(key).response_header_version(version) == response_header


def test_unknown_keys() -> None:
    """A key that does not exist is a ValueError."""
    with pytest.raises(ValueError, match="999"):
        api(999)
