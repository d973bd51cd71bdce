"""What fast routes leave to the declared codec."""

import pytest

from barnabas_broker.server.requests.fast.declared import response_frame
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatResponse
from barnabas_kafka.protocol.registry import ApiKey

HEARTBEAT = registry.api(ApiKey.HEARTBEAT)
LAST_BEFORE_FLEXIBLE, FLEXIBLE = 3, 4


@pytest.mark.parametrize(("version", "header"), [(LAST_BEFORE_FLEXIBLE, 4), (FLEXIBLE, 5)])
def test_a_response_is_written_with_its_size(version: int, header: int) -> None:
    """As clients read it: size, correlation id, tagged fields of the header, body."""
    response = HeartbeatResponse(error_code=27)
    frame = response_frame(HEARTBEAT, version, 7, response)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 7
    assert codec.decode_from(HeartbeatResponse, frame, version, 4 + header)[0] == response
