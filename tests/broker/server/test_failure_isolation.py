"""One partition with which something unforeseen fails, among others in the same request."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.controller.config_manager import ConfigManager
from barnabas_broker.controller.transitions import (
    leader_election,
    partition_reassignment,
    topic_creation,
)
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.group_coordinator import GroupCoordinator
from barnabas_broker.coordinator.group.membership import Membership
from barnabas_broker.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.handlers import alter_configs as alter_configs_handler
from barnabas_broker.server.requests.handlers import create_topics as create_topics_handler
from barnabas_broker.server.requests.handlers import delete_topics as delete_topics_handler
from barnabas_broker.server.requests.handlers import describe_configs as describe_configs_handler
from barnabas_broker.server.requests.handlers import describe_log_dirs as describe_log_dirs_handler
from barnabas_broker.server.requests.handlers import (
    incremental_alter_configs as incremental_handler,
)
from barnabas_broker.server.requests.handlers import list_transactions as list_transactions_handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.zk.znodes import ConfigZnode
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import LATEST_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas_kafka.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    TopicRequest as TopicRequestOfPartitions,
)
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, fetch_request, port_of, running_node
from tests.waiting import wait_for

FAILED, FINE = ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE
BATCH = bytes(build_batch([(0, None, b"v", ())]))
BOTH = (0, 1)


def produce(wire: Wire, topic: str) -> list[int]:
    """Produce to both partitions."""
    data = [PartitionProduceData(index=index, records=BATCH) for index in BOTH]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics), 9)
    return [it.error_code for it in answer.responses[0].partition_responses]


def fetch(wire: Wire, topic: str) -> list[int]:
    """Fetch from both."""
    answer = wire.ask(fetch_request([(topic, index, 0) for index in BOTH]), 12)
    return [it.error_code for each in answer.responses for it in each.partitions]


def list_offsets(wire: Wire, topic: str) -> list[int]:
    """The ends of both."""
    asked = [ListOffsetsPartition(partition_index=it, timestamp=LATEST_TIMESTAMP) for it in BOTH]
    topics = [ListOffsetsTopic(name=topic, partitions=asked)]
    answer = wire.ask(ListOffsetsRequest(topics=topics), 7)
    return [it.error_code for it in answer.topics[0].partitions]


def epoch_ends(wire: Wire, topic: str) -> list[int]:
    """Where an epoch of both ended."""
    asked = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in BOTH]
    topics = [OffsetForLeaderTopic(topic=topic, partitions=asked)]
    answer = wire.ask(OffsetForLeaderEpochRequest(topics=topics), 4)
    return [it.error_code for it in answer.topics[0].partitions]


def delete_records(wire: Wire, topic: str) -> list[int]:
    """Delete nothing from both."""
    asked = [DeleteRecordsPartition(partition_index=index, offset=0) for index in BOTH]
    topics = [DeleteRecordsTopic(name=topic, partitions=asked)]
    answer = wire.ask(DeleteRecordsRequest(topics=topics, timeout_ms=60_000), 2)
    return [it.error_code for it in answer.topics[0].partitions]


def describe_producers(wire: Wire, topic: str) -> list[int]:
    """Who produces to both."""
    topics = [TopicRequest(name=topic, partition_indexes=list(BOTH))]
    answer = wire.ask(DescribeProducersRequest(topics=topics), 0)
    return [it.error_code for it in answer.topics[0].partitions]


@pytest.mark.parametrize(
    "ask", [produce, fetch, list_offsets, epoch_ends, delete_records, describe_producers]
)
def test_the_other_partitions_are_served(
    ask: Callable[[Wire, str], list[int]], wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one has an error of its own, and the connection stays."""
    topic = f"two-for-{ask.__name__}"
    wire.create_topic(topic, partitions=2)
    assert ask(wire, topic) == [FINE, FINE]
    leader, readable, led = ReplicaManager.leader, ReplicaManager.readable, ReplicaManager.led

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def find(self: ReplicaManager, *asked: Any) -> Any:
            index = asked[0].partition if isinstance(asked[0], TopicPartition) else asked[1]
            return real(self, *asked) if index else 1 // 0

        return find

    for name, real in (("leader", leader), ("readable", readable), ("led", led)):
        monkeypatch.setattr(ReplicaManager, name, failing(real))
    assert ask(wire, topic) == [FAILED, FINE]


@pytest.mark.parametrize("step", ["replication", "broker.groups", "broker.transactions"])
def test_metadata_is_applied_to_the_other_parts_of_a_broker(
    step: str, node: BrokerServer, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replicas, replication, groups and transactions each apply it, whatever one of them raises."""
    applied = []
    for name in ("replication", "broker.groups", "broker.transactions"):
        part = attrgetter(name)(node)

        def on_image(*_: object, name: str = name) -> None:
            applied.append(name)
            if name == step:
                raise ValueError("a defect")

        monkeypatch.setattr(part, "on_image", on_image)
    wire.create_topic(f"after-{step}")
    assert applied == ["replication", "broker.groups", "broker.transactions"]


# --- groups, transactions, resources and markers


def describe_groups(wire: Wire, names: Sequence[str]) -> list[int]:
    """The states of groups."""
    answer = wire.ask(DescribeGroupsRequest(groups=list(names)), 5)
    return [it.error_code for it in answer.groups]


def offset_fetch(wire: Wire, names: Sequence[str]) -> list[int]:
    """The offsets of groups."""
    groups = [OffsetFetchRequestGroup(group_id=it, topics=None) for it in names]
    return [it.error_code for it in wire.ask(OffsetFetchRequest(groups=groups), 8).groups]


def delete_groups(wire: Wire, names: Sequence[str]) -> list[int]:
    """Delete groups."""
    answer = wire.ask(DeleteGroupsRequest(groups_names=list(names)), 2)
    return [it.error_code for it in answer.results]


def describe_transactions(wire: Wire, names: Sequence[str]) -> list[int]:
    """The states of transactional ids."""
    answer = wire.ask(DescribeTransactionsRequest(transactional_ids=list(names)), 0)
    return [it.error_code for it in answer.transaction_states]


def describe_configs(wire: Wire, names: Sequence[str]) -> list[int]:
    """The settings of topics."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=it) for it in names]
    answer = wire.ask(DescribeConfigsRequest(resources=resources), 4)
    return [it.error_code for it in answer.results]


def alter_configs(wire: Wire, names: Sequence[str]) -> list[int]:
    """Change the settings of topics."""
    resources = [AlterConfigsResource(resource_type=2, resource_name=it) for it in names]
    answer = wire.ask(AlterConfigsRequest(resources=resources, validate_only=True), 2)
    return [it.error_code for it in answer.responses]


def incremental_alter_configs(wire: Wire, names: Sequence[str]) -> list[int]:
    """Change some settings of topics."""
    resources = [IncrementalResource(resource_type=2, resource_name=it) for it in names]
    answer = wire.ask(IncrementalAlterConfigsRequest(resources=resources, validate_only=True), 1)
    return [it.error_code for it in answer.responses]


def write_txn_markers(wire: Wire, names: Sequence[str]) -> list[int]:
    """Write ends of a transaction into topics."""
    topics = [WritableTxnMarkerTopic(name=it, partition_indexes=[0]) for it in names]
    marker = WritableTxnMarker(producer_id=1, producer_epoch=0, topics=topics)
    answer = wire.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    return [part.error_code for it in answer.markers[0].topics for part in it.partitions]


def add_partitions_to_txn(wire: Wire, names: Sequence[str]) -> list[int]:
    """Verify partitions of transactions."""
    topics = [AddPartitionsToTxnTopic(name="fine", partitions=[0])]
    transactions = [
        AddPartitionsToTxnTransaction(
            transactional_id=it, producer_id=1, producer_epoch=0, verify_only=True, topics=topics
        )
        for it in names
    ]
    answer = wire.ask(AddPartitionsToTxnRequest(transactions=transactions), 4)
    return [
        part.partition_error_code
        for it in answer.results_by_transaction
        for topic in it.topic_results
        for part in topic.results_by_partition
    ]


def offset_commit(wire: Wire, names: Sequence[str]) -> list[int]:
    """Commit an offset of each topic."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    named = [*names, "nowhere"]  # Which no fast path serves.
    topics = [OffsetCommitRequestTopic(name=it, partitions=[partition]) for it in named]
    answer = wire.ask(OffsetCommitRequest(group_id="offsets", topics=topics), 8)
    return [it.partitions[0].error_code for it in answer.topics][: len(names)]


def offset_delete(wire: Wire, names: Sequence[str]) -> list[int]:
    """Delete the offset of each topic."""
    offset_commit(wire, ["fine"])  # Else there is no such group.
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=it, partitions=partitions) for it in names]
    answer = wire.ask(OffsetDeleteRequest(group_id="offsets", topics=topics), 0)
    return [it.partitions[0].error_code for it in answer.topics]


def find_coordinator(wire: Wire, names: Sequence[str]) -> list[int]:
    """The coordinators of groups."""
    answer = wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=list(names)), 4)
    return [it.error_code for it in answer.coordinators]


def create_topics(wire: Wire, names: Sequence[str]) -> list[int]:
    """Whether topics could be created."""
    topics = [CreatableTopic(name=it, num_partitions=1, replication_factor=1) for it in names]
    answer = wire.ask(CreateTopicsRequest(topics=topics, validate_only=True), 7)
    return [it.error_code for it in answer.topics]


def create_partitions(wire: Wire, names: Sequence[str]) -> list[int]:
    """Whether topics could have more partitions."""
    topics = [CreatePartitionsTopic(name=it, count=20) for it in names]
    answer = wire.ask(CreatePartitionsRequest(topics=topics, validate_only=True), 3)
    return [it.error_code for it in answer.results]


def delete_topics(wire: Wire, names: Sequence[str]) -> list[int]:
    """Delete topics that there are not."""
    topics = [DeleteTopicState(name=it) for it in names]
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="fine")], timeout_ms=60_000)
    wire.ask(request, 6)
    request.topics = topics
    answer = wire.ask(request, 6)
    return [it.error_code for it in answer.responses]


def elect_leaders(wire: Wire, names: Sequence[str]) -> list[int]:
    """Elect the preferred leaders of topics."""
    topics = [TopicPartitions(topic=it, partitions=[0]) for it in names]
    answer = wire.ask(ElectLeadersRequest(topic_partitions=topics, timeout_ms=60_000), 2)
    return [it.partition_result[0].error_code for it in answer.replica_election_results]


def reassign(wire: Wire, names: Sequence[str]) -> list[int]:
    """Have topics lie where they are."""
    moved = [ReassignablePartition(partition_index=0, replicas=[0])]
    topics = [ReassignableTopic(name=it, partitions=moved) for it in names]
    request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=60_000)
    answer = wire.ask(request, 0)
    return [it.partitions[0].error_code for it in answer.responses]


def describe_topics(wire: Wire, names: Sequence[str]) -> list[int]:
    """Topics and their partitions, which are told by name."""
    topics = [TopicRequestOfPartitions(name=it) for it in names]
    answer = wire.ask(DescribeTopicPartitionsRequest(topics=topics), 0)
    codes = {it.name: it.error_code for it in answer.topics}
    return [codes[it] for it in names]


def leave_group(wire: Wire, names: Sequence[str]) -> list[int]:
    """Take members out of a group that does not know them."""
    offset_commit(wire, ["fine"])  # Else there is no such group.
    members = [MemberIdentity(member_id=it) for it in names]
    answer = wire.ask(LeaveGroupRequest(group_id="offsets", members=members), 4)
    return [it.error_code for it in answer.members]


def metadata(wire: Wire, names: Sequence[str]) -> list[int]:
    """Topics and their partitions, as clients ask for them."""
    topics = [MetadataRequestTopic(name=it) for it in names]
    answer = wire.ask(MetadataRequest(topics=topics), 12)
    codes = {it.name: it.error_code for it in answer.topics}
    return [codes[it] for it in names]


def alter_credentials(wire: Wire, names: Sequence[str]) -> list[int]:
    """Set passwords of users."""
    upsertions = [
        ScramCredentialUpsertion(
            name=it, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
        )
        for it in names
    ]
    answer = wire.ask(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)
    return [it.error_code for it in answer.results]


BY_NAME = [
    (metadata, ReplicaManager, "as_served"),
    (alter_credentials, ConfigZnode, "for_user"),
    (alter_configs, ConfigManager, "_alter_topic"),
    (incremental_alter_configs, ConfigManager, "_alter_topic"),
    (create_topics, create_topics_handler, "_refusal"),
    (create_partitions, RequestContext, "allowed"),
    (describe_topics, ReplicaManager, "as_served"),
    (leave_group, Membership, "leave"),
    (offset_commit, RequestContext, "allowed"),
    (offset_delete, RequestContext, "allowed"),
    (find_coordinator, RequestContext, "allowed"),
    (delete_topics, delete_topics_handler, "_checked"),
    (create_topics, topic_creation, "_plan"),
    (create_partitions, topic_creation, "_planned_growth"),
    (elect_leaders, leader_election, "_elected"),
    (reassign, partition_reassignment, "_planned"),
    (describe_groups, GroupCoordinator, "group"),
    (offset_fetch, GroupCoordinator, "group"),
    (offset_fetch, GroupCoordinator, "settled"),
    (delete_groups, GroupCoordinator, "ask"),
    (describe_transactions, TransactionCoordinator, "transaction"),
    (describe_configs, describe_configs_handler, "validate_name"),
    (alter_configs, alter_configs_handler, "authorize_alter"),
    (incremental_alter_configs, incremental_handler, "authorize_alter"),
    (write_txn_markers, Partition, "check_in_sync"),
    (add_partitions_to_txn, TransactionCoordinator, "verify"),
]


@pytest.mark.parametrize(("ask", "owner", "name"), BY_NAME)
def test_the_other_groups_and_resources_are_served(
    ask: Callable[[Wire, Sequence[str]], list[int]],
    owner: Any,
    name: str,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the error with one of them; it has an error of its own, and the connection stays."""
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=it) for it in ("fine", "bad")]), 4)
    for key_type in (0, 1):  # Creates the coordinators' topics.
        wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["fine"]), 4)
    expected = ask(wire, ["fine"])[0]
    real = getattr(owner, name)

    def faulty(*args: Any, **more: Any) -> Any:
        subjects = [getattr(it, "tp", it) for it in args]
        kinds = ("topic", "name", "member_id")
        names = [
            next((getattr(it, kind) for kind in kinds if hasattr(it, kind)), it) for it in subjects
        ]
        if "bad" in names:
            raise ValueError("a defect")
        return real(*args, **more)

    monkeypatch.setattr(owner, name, faulty)
    answered = ask(wire, ["bad", "fine"])
    assert answered[1] == expected
    assert answered[0] == (expected if name == "settled" else FAILED)


def test_the_other_log_directories_are_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition of one cannot be looked at: that directory has an error, the other has not."""
    directories = [tmp_path / name for name in ("a", "b")]
    settings = {"log.dirs": ",".join(map(str, directories))}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("both", partitions=2)
        real = describe_log_dirs_handler._lag

        def faulty(call: RequestContext, tp: TopicPartition) -> int:
            if tp.partition == 0:
                raise ValueError("a defect")
            return real(call, tp)

        monkeypatch.setattr(describe_log_dirs_handler, "_lag", faulty)
        answer = wire.ask(DescribeLogDirsRequest(topics=None), 4)
    assert sorted(it.error_code for it in answer.results) == sorted([FAILED, FINE])
    (described,) = (it for it in answer.results if not it.error_code)
    assert [it.partition_index for it in described.topics[0].partitions] == [1]


def test_the_other_groups_are_listed(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be looked at is left out: an entry has no place for an error."""
    wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["bad"]), 4)
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="fine")]), 4)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="fine", partitions=[partition])]
    for name in ("bad", "good"):
        answer = wire.ask(OffsetCommitRequest(group_id=name, topics=topics), 8)
        assert answer.topics[0].partitions[0].error_code == FINE

    def kind(self: Group) -> str:
        if self.id == "bad":
            raise ValueError("a defect")
        return "classic"

    monkeypatch.setattr(Group, "kind", property(kind))
    answer = wire.ask(ListGroupsRequest(), 5)
    listed = [it.group_id for it in answer.groups if it.group_id != "offsets"]
    assert (answer.error_code, listed) == (FINE, ["good"])


def test_the_other_transactions_are_listed(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be looked at is left out: an entry has no place for an error."""
    wire.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["bad"]), 4)
    names = ("bad", "fine")
    for name in names:
        first = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
        )
        wait_for(
            "the coordinator",
            lambda first=first: wire.ask(first, 4).error_code,  # type: ignore[misc]
            until=lambda code: code == FINE,
        )
    real = list_transactions_handler._may_describe

    def faulty(transactional_id: str, call: RequestContext) -> bool:
        if transactional_id == "bad":
            raise ValueError("a defect")
        return real(transactional_id, call)

    monkeypatch.setattr(list_transactions_handler, "_may_describe", faulty)
    answer = wire.ask(ListTransactionsRequest(), 1)
    assert (answer.error_code, [it.transactional_id for it in answer.transaction_states]) == (
        FINE, ["fine"],
    )  # fmt: skip
