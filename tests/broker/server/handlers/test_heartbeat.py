"""Heartbeat on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from tests.broker.server.members import Member, find
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(5))
def test_every_version_is_answered(wire: Wire, version: int) -> None:
    """A member lives, others are unknown."""
    find(wire, "g")
    member = Member(wire, f"beat-{version}")
    member.enter()
    request = HeartbeatRequest(group_id=member.group, generation_id=1, member_id=member.id)
    assert wire.ask(request, version).error_code == 0
    request.member_id = "x"
    assert wire.ask(request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    request.group_id = ""
    assert wire.ask(request, version).error_code == ErrorCode.INVALID_GROUP_ID
