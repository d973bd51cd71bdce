"""DescribeGroups on a running broker."""

import pytest

from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.broker.server.members import Member, find
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(6))
def test_every_version_tells_of_members(wire: Wire, version: int) -> None:
    """Their metadata and assignments only once those hold; unknown groups are dead."""
    find(wire, "g")
    member = Member(wire, f"described-{version}")
    member.enter()
    request = DescribeGroupsRequest(groups=[member.group, "unknown"])
    group, unknown = wire.ask(request, version).groups
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert group.members[0].member_metadata == b""
    assert (unknown.error_code, unknown.group_state) == (0, "Dead")
    member.sync({member.id: b"mine"})
    (group, _) = wire.ask(request, version).groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (told,) = group.members
    assert (told.client_id, told.client_host) == ("wire", "/127.0.0.1")
    assert (told.member_metadata, told.member_assignment) == (b"m", b"mine")


def test_authorised_operations_are_told_on_request(wire: Wire) -> None:
    """Read, delete and describe, as bits (KIP-430)."""
    find(wire, "g")
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (group,) = wire.ask(request, 5).groups
    assert group.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8
