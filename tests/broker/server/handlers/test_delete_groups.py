"""DeleteGroups on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.broker.server.members import Member, commit, committed, find
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes(wire: Wire, topic: str, version: int) -> None:
    """Groups without members go, with their offsets."""
    find(wire, "g")
    busy = f"busy-{version}"
    Member(wire, busy).enter()
    assert commit(wire, "idle", topic, 4) == 0
    request = DeleteGroupsRequest(groups_names=["idle", busy, "unknown"])
    codes = {each.group_id: each.error_code for each in wire.ask(request, version).results}
    assert codes == {
        "idle": 0,
        busy: ErrorCode.NON_EMPTY_GROUP,
        "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert committed(wire, "idle", topic) == -1
