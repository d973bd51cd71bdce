"""ListGroups on a running broker."""

from collections.abc import Iterator

import pytest

from barnabas_broker.server.process import cooperative_scheduler
from barnabas_broker.server.process.cooperative_scheduler import CooperativeScheduler
from barnabas_kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from barnabas_kafka.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
)
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas_kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    TopicRequest as TopicName,
)
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from barnabas_kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest
from barnabas_kafka.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas_kafka.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.schema import Request
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


IDS = ["turns-0", "turns-1", "turns-2"]


@pytest.fixture
def transactions(wire: Wire) -> None:
    """Three transactional ids."""
    for each in IDS:
        assert wire.ask(FindCoordinatorRequest(key=each, key_type=1), 1).error_code == 0
        request = InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=60_000)
        assert wire.ask(request, 4).error_code == 0


@pytest.mark.usefixtures("groups", "transactions")
@pytest.mark.parametrize(
    ("request_", "version", "things"),
    [
        (ListGroupsRequest(), 5, 2),
        (ListTransactionsRequest(), 1, len(IDS)),
        (ConsumerGroupDescribeRequest(group_ids=IDS), 0, len(IDS)),
        (DescribeTransactionsRequest(transactional_ids=IDS), 0, len(IDS)),
        (
            DescribeProducersRequest(
                topics=[TopicRequest(name="none", partition_indexes=[0, 1, 2])]
            ),
            0,
            3,
        ),
        (DescribeTopicPartitionsRequest(topics=[TopicName(name=it) for it in IDS]), 0, 3),
        (DescribeLogDirsRequest(), 4, 3),
        (
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic="none",
                        partitions=[OffsetForLeaderPartition(partition=it) for it in range(3)],
                    )
                ]
            ),
            4,
            3,
        ),
        (
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name="none",
                        partitions=[DeleteRecordsPartition(partition_index=it) for it in range(3)],
                    )
                ]
            ),
            2,
            3,
        ),
        (
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=it, count=2) for it in IDS], timeout_ms=1
            ),
            3,
            3,
        ),
        (
            AlterConfigsRequest(
                resources=[AlterConfigsResource(resource_type=2, resource_name=it) for it in IDS]
            ),
            2,
            3,
        ),
        (
            IncrementalAlterConfigsRequest(
                resources=[IncrementalResource(resource_type=2, resource_name=it) for it in IDS]
            ),
            1,
            3,
        ),
        (
            DescribeUserScramCredentialsRequest(users=[UserName(name=it) for it in IDS]),
            0,
            3,
        ),
        (
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name="none",
                        partitions=[ReassignablePartition(partition_index=it) for it in range(3)],
                    )
                ]
            ),
            0,
            6,
        ),
        (
            ListPartitionReassignmentsRequest(
                topics=[ListPartitionReassignmentsTopics(name="none", partition_indexes=[0, 1, 2])]
            ),
            0,
            3,
        ),
        (
            ElectLeadersRequest(
                topic_partitions=[TopicPartitions(topic="none", partitions=[0, 1, 2])]
            ),
            2,
            6,
        ),
        (
            AlterClientQuotasRequest(
                entries=[
                    AlterClientQuotasRequestEntryData(
                        entity=[EntityData(entity_type="user", entity_name=it)],
                        ops=[OpData(key="producer_byte_rate", value=1e9)],
                    )
                    for it in IDS
                ],
            ),
            1,
            6,
        ),
        (DescribeClientQuotasRequest(components=[], strict=False), 1, 3),  # Those set just now.
        (FindCoordinatorRequest(key_type=0, coordinator_keys=IDS), 4, 6),
        (
            OffsetDeleteRequest(
                group_id="idle",
                topics=[
                    OffsetDeleteRequestTopic(
                        name="none",
                        partitions=[
                            OffsetDeleteRequestPartition(partition_index=it) for it in range(3)
                        ],
                    )
                ],
            ),
            0,
            3,
        ),
    ],
)
def test_others_have_their_turns_between_what_may_be_very_many(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, request_: Request, version: int, things: int
) -> None:
    """A broker may have a hundred thousand of them, and who asks may know of none."""
    turns = []
    go_on = CooperativeScheduler._resume

    def counted(self: CooperativeScheduler, *work: object) -> None:
        turns.append(work)
        go_on(self, *work)  # type: ignore[arg-type]

    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", -1.0)
    monkeypatch.setattr(CooperativeScheduler, "_resume", counted)
    wire.ask(request_, version)
    assert len(turns) >= things
