"""Handlers are declared in one place each."""

from barnabas_broker.server.handlers import metadata
from barnabas_kafka.protocol.registry import ApiKey, VersionRange, api


def test_a_handler_names_its_api_and_versions_that_the_codecs_know() -> None:
    """A version that is advertised can be decoded."""
    handler = metadata.HANDLER
    assert handler.api_key is ApiKey.METADATA
    assert handler.versions == VersionRange(0, 12)
    assert handler.versions.max <= api(handler.api_key).versions.max
