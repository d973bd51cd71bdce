"""What fast routes leave to the declared codec."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas_broker.server.requests.fast.declared import request_of, response_frame
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas_kafka.protocol.registry import ApiKey

HEARTBEAT = registry.api(ApiKey.HEARTBEAT)
LAST_BEFORE_FLEXIBLE, FLEXIBLE = 3, 4


@pytest.mark.parametrize("version", [LAST_BEFORE_FLEXIBLE, FLEXIBLE])
def test_a_request_is_read_behind_its_header(version: int) -> None:
    """With whatever client id, in versions with tagged fields and without."""
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    header = encode_request_header(RequestHeader(ApiKey.HEARTBEAT, version, 7, "client"))
    frame = memoryview(header + codec.encode(request, version))
    call: Any = SimpleNamespace(version=version)
    assert request_of(HEARTBEAT, frame, call) == request


@pytest.mark.parametrize(("version", "header"), [(LAST_BEFORE_FLEXIBLE, 4), (FLEXIBLE, 5)])
def test_a_response_is_written_with_its_size(version: int, header: int) -> None:
    """As clients read it: size, correlation id, tagged fields of the header, body."""
    response = HeartbeatResponse(error_code=27)
    frame = response_frame(HEARTBEAT, version, 7, response)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 7
    assert codec.decode_from(HeartbeatResponse, frame, version, 4 + header)[0] == response
