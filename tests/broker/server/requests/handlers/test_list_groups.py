"""ListGroups on a running broker."""

from collections.abc import Iterator

import pytest

from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest
from barnabas_kafka.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from tests.broker.server.members import Member, commit, find
from tests.broker.server.running import Wire


@pytest.fixture
def groups(wire: Wire, topic: str) -> Iterator[None]:
    """One group with a member, one with offsets alone."""
    find(wire, "g")
    member = Member(wire, "busy")
    member.enter()
    assert commit(wire, "idle", topic, 1) == 0
    yield
    # Or the next member would wait for this one.
    wire.ask(LeaveGroupRequest(group_id="busy", member_id=member.id), 0)


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("version", range(6))
def test_every_version_lists(wire: Wire, version: int) -> None:
    """State and type come with later versions."""
    found = {each.group_id: each for each in wire.ask(ListGroupsRequest(), version).groups}
    expected = ListedGroup(group_id="busy", protocol_type="consumer")
    if version >= 4:
        expected.group_state = "CompletingRebalance"
    if version >= 5:
        expected.group_type = "classic"
    assert found["busy"] == expected
    assert found["idle"].protocol_type == ""


@pytest.mark.usefixtures("groups")
def test_groups_are_picked_by_state_and_type(wire: Wire) -> None:
    """In any case of letters (KIP-518, KIP-848)."""

    def listed(**filters: list[str]) -> set[str]:
        answer = wire.ask(ListGroupsRequest(**filters), 5)
        return {each.group_id for each in answer.groups}

    assert listed(states_filter=["empty"]) == {"idle"}
    assert listed(states_filter=["Stable"]) == set()
    assert listed(types_filter=["Classic"]) == {"busy", "idle"}
    assert listed(types_filter=["consumer"]) == set()
