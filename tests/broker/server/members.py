"""Group members that speak raw frames to a running broker."""

from typing import Any

from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.broker.server.running import Wire


def find(wire: Wire, group: str) -> None:
    """Ask for the coordinator, which makes the topic of groups."""
    assert wire.ask(FindCoordinatorRequest(key=group), 3).error_code == 0


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    """A JoinGroup request of a consumer."""
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        **{
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            **fields,
        },
    )


class Member:
    """One member on a connection; `told` is its last JoinGroup answer."""

    def __init__(self, wire: Wire, group: str, member_id: str = "", generation: int = -1) -> None:
        self.wire = wire
        self.group = group
        self.id = member_id
        self.generation = generation
        self.reported = JoinGroupResponse()

    def enter(self, *, version: int = 9, **fields: Any) -> None:
        """Join, in two steps where the version wants that."""
        for _ in range(2):
            request = join_request(self.group, self.id, **fields)
            self.reported = self.wire.ask(request, version)
            self.id = self.reported.member_id
            if self.reported.error_code == 0:
                break
        assert self.reported.error_code == 0
        self.generation = self.reported.generation_id

    def _sync(self, assign: dict[str, bytes]) -> SyncGroupResponse:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assign.items()
            ],
        )
        response: SyncGroupResponse = self.wire.ask(request, 5)
        return response

    def sync(self, assign: dict[str, bytes]) -> bytes:
        """Bring or fetch an assignment."""
        response = self._sync(assign)
        assert response.error_code == 0
        return response.assignment

    def sync_error(self) -> int:
        """Fetch an assignment, and return the error."""
        return self._sync({}).error_code

    def beat(self) -> int:
        """Heartbeat; returns the error code."""
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.id
        )
        code: int = self.wire.ask(request, 4).error_code
        return code


def commit(
    wire: Wire, group: str, topic: str, offset: int, *, version: int = 9, **fields: Any
) -> int:
    """Commit an offset of partition 0; returns the error code."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=fields.get("generation", -1),
        member_id=fields.get("member", ""),
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    code: int = wire.ask(request, version).topics[0].partitions[0].error_code
    return code


def committed(wire: Wire, group: str, topic: str, *, version: int = 7) -> int:
    """The committed offset of partition 0, -1 for none."""
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    )
    (partition,) = wire.ask(request, version).topics[0].partitions
    assert partition.error_code == 0
    offset: int = partition.committed_offset
    return offset
