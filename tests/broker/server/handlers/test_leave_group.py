"""LeaveGroup on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.server.members import Member, find
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(6))
def test_every_version_leaves(wire: Wire, version: int) -> None:
    """Once; the second time the member is unknown."""
    find(wire, "g")
    member = Member(wire, f"leave-{version}")
    member.enter()
    codes = []
    for _ in range(2):
        if version < 3:
            request = LeaveGroupRequest(group_id=member.group, member_id=member.id)
            codes.append(wire.ask(request, version).error_code)
        else:
            leaver = MemberIdentity(member_id=member.id)
            answer = wire.ask(LeaveGroupRequest(group_id=member.group, members=[leaver]), version)
            assert answer.error_code == 0
            codes.append(answer.members[0].error_code)
    assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID]
