"""Requests of classic groups, and about groups, to a running broker."""

from __future__ import annotations

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.broker.server.members import Member, commit, committed, find, join_request
from tests.broker.server.running import Wire, port_of

# --- FindCoordinator on a running broker


@pytest.mark.parametrize("version", range(7))
def test_groups_are_coordinated_here(wire: Wire, node: BrokerServer, version: int) -> None:
    """The first question creates the topic, and its answer is already the right one."""
    if version < 4:
        answer = wire.ask(FindCoordinatorRequest(key="team"), version)
        assert answer.error_message == ("NONE" if version else "")
    else:
        request = FindCoordinatorRequest(coordinator_keys=["team"])
        (answer,) = wire.ask(request, version).coordinators
        assert answer.key == "team"
    assert answer.error_code == 0
    assert (answer.node_id, answer.host, answer.port) == (0, "127.0.0.1", port_of(node))


def test_transactional_ids_have_a_coordinator(wire: Wire, node: BrokerServer) -> None:
    """The first question creates the topic that they are kept in, with one replica here."""
    answer = wire.ask(FindCoordinatorRequest(key="tx", key_type=1), 3)
    assert (answer.error_code, answer.node_id) == (0, 0)
    topic = node.broker.image.topics["__transaction_state"]
    assert len(topic.partitions) == 50
    assert topic.config["min.insync.replicas"] == "1"
    assert topic.config["cleanup.policy"] == "compact"


def test_other_kinds_of_coordinator_are_unknown(wire: Wire) -> None:
    """Each key is refused."""
    request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=2)
    codes = [each.error_code for each in wire.ask(request, 6).coordinators]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2


# --- JoinGroup on a running broker


@pytest.mark.parametrize("version", range(10))
def test_every_version_enters(wire: Wire, version: int) -> None:
    """Alone in a group one leads it."""
    find(wire, "g")
    member = Member(wire, f"join-{version}")
    member.enter(version=version)
    assert member.reported.leader == member.id
    assert [each.metadata for each in member.reported.members] == [b"m"]
    assert member.id.startswith("wire-")


def test_a_group_has_a_name(wire: Wire) -> None:
    """The empty one is refused."""
    answer = wire.ask(join_request(""), 5)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


# --- SyncGroup on a running broker


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


def test_sync_group_a_group_has_a_name(wire: Wire) -> None:
    """The empty one is refused."""
    answer = wire.ask(SyncGroupRequest(group_id=""), 3)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


# --- Heartbeat on a running broker


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


# --- LeaveGroup on a running broker


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


# --- DescribeGroups on a running broker


@pytest.mark.parametrize("version", range(6))
def test_every_version_describes_members(wire: Wire, version: int) -> None:
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
    (reported,) = group.members
    assert (reported.client_id, reported.client_host) == ("wire", "/127.0.0.1")
    assert (reported.member_metadata, reported.member_assignment) == (b"m", b"mine")


def test_authorized_operations_of_a_group_are_returned_on_request(wire: Wire) -> None:
    """Read, delete and describe, as bits (KIP-430)."""
    find(wire, "g")
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (group,) = wire.ask(request, 5).groups
    assert group.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8


# --- DeleteGroups on a running broker


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


# --- OffsetDelete on a running broker


def test_single_offsets_are_deleted(wire: Wire, topic: str) -> None:
    """Partitions that do not exist are told; unknown groups are an error of the whole."""
    find(wire, "g")
    assert commit(wire, "g", topic, 4) == 0
    partitions = [OffsetDeleteRequestPartition(partition_index=each) for each in (0, 9)]
    request = OffsetDeleteRequest(
        group_id="g", topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    )
    answer = wire.ask(request, 0)
    assert answer.error_code == 0
    (reported,) = answer.topics
    assert {each.partition_index: each.error_code for each in reported.partitions} == {
        0: 0,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert committed(wire, "g", topic) == -1
    request.group_id = "unknown"
    assert wire.ask(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    request.group_id = ""
    assert wire.ask(request, 0).error_code == ErrorCode.INVALID_GROUP_ID
