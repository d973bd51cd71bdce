"""ApiVersions, as a client sees it."""

import pytest

from barnabas_broker.server.dispatch import collect_handlers
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(5))
def test_exactly_what_has_a_handler_is_listed(wire: Wire, version: int) -> None:
    """A client must be able to rely on every line, in every version of the answer."""
    request = ApiVersionsRequest(client_software_name="wire", client_software_version="1.0")
    response = wire.ask(request, version)
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [
        (handler.api_key, handler.versions.min, handler.versions.max)
        for handler in collect_handlers()
    ]


@pytest.mark.parametrize("name", ["", "no spaces", "-dash", "dot."])
def test_client_software_must_be_named(wire: Wire, name: str) -> None:
    """KIP-511 says what a name looks like; anything else would end up in logs and metrics."""
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
    assert wire.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST
