"""SyncGroup on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.broker.server.members import Member, find
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(6))
def test_every_version_brings_and_fetches(wire: Wire, version: int) -> None:
    """From version 5 on the protocol must be named."""
    find(wire, "g")
    member = Member(wire, f"sync-{version}")
    member.enter()
    request = SyncGroupRequest(
        group_id=member.group,
        member_id=member.id,
        generation_id=1,
        assignments=[SyncGroupRequestAssignment(member_id=member.id, assignment=b"mine")],
    )
    if version >= 5:
        refused = wire.ask(request, version)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocol_type, request.protocol_name = "consumer", "range"
    answer = wire.ask(request, version)
    assert (answer.error_code, answer.assignment) == (0, b"mine")


def test_a_group_has_a_name(wire: Wire) -> None:
    """The empty one is refused."""
    answer = wire.ask(SyncGroupRequest(group_id=""), 3)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
