"""Requests that name very many things, and those who are served meanwhile."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import cooperative_scheduler
from barnabas_broker.server.process.cooperative_scheduler import CooperativeScheduler
from barnabas_broker.server.requests import dispatch
from barnabas_broker.server.requests.handlers import metadata
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas_kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
)
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas_kafka.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
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
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.members import find
from tests.broker.server.process.test_offload_pool import occupy
from tests.broker.server.running import Wire, fetch_request, port_of, produce_request
from tests.waiting import RUN, seconds

SOUND = build_batch([(1000, b"key", b"value", ())])
AT_ONCE = 500


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded while others wait is less here, which makes the tests so much faster."""
    monkeypatch.setattr(dispatch, "ELEMENTS_AT_ONCE", AT_ONCE)


def names(count: int) -> list[str]:
    """Names of things that do not exist."""
    return [f"nothing-{number}" for number in range(count)]


def of_transactions(count: int) -> list[tuple[Message, int]]:
    """Those of transactions, and the one that moves partitions between directories."""
    pending = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return [
        (
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="transaction",
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names(count)
                ],
            ),
            3,
        ),
        (
            TxnOffsetCommitRequest(
                transactional_id="transaction",
                group_id="group",
                topics=[
                    TxnOffsetCommitRequestTopic(name=name, partitions=[pending])
                    for name in names(count)
                ],
            ),
            2,
        ),
        (
            WriteTxnMarkersRequest(
                markers=[
                    WritableTxnMarker(
                        topics=[
                            WritableTxnMarkerTopic(name=name, partition_indexes=[0])
                            for name in names(count)
                        ]
                    )
                ]
            ),
            1,
        ),
        (
            AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDir(
                        path="/nowhere",
                        topics=[
                            AlterReplicaLogDirTopic(name=name, partitions=[0])
                            for name in names(count)
                        ],
                    )
                ]
            ),
            2,
        ),
    ]


def requests(count: int) -> list[tuple[Message, int]]:
    """One of each kind that may name very many things, with its version, naming `count`."""
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    commit = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return [
        (
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in names(count)],
                allow_auto_topic_creation=False,
            ),
            4,
        ),
        (
            ListOffsetsRequest(
                replica_id=-1,
                topics=[ListOffsetsTopic(name=name, partitions=[latest]) for name in names(count)],
            ),
            5,
        ),
        (
            OffsetCommitRequest(
                group_id="group",
                topics=[
                    OffsetCommitRequestTopic(name=name, partitions=[commit])
                    for name in names(count)
                ],
            ),
            7,
        ),
        (
            OffsetFetchRequest(
                group_id="group",
                topics=[
                    OffsetFetchRequestTopic(name=name, partition_indexes=[0])
                    for name in names(count)
                ],
            ),
            5,
        ),
        (fetch_request([(name, 0, 0) for name in names(count)]), 11),
        (
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=2, resource_name=name)
                    for name in names(count)
                ]
            ),
            1,
        ),
        (
            CreateTopicsRequest(
                timeout_ms=1000,
                topics=[
                    CreatableTopic(name=f"{name}/", num_partitions=1, replication_factor=1)
                    for name in names(count)
                ],
            ),
            5,
        ),
        (DeleteTopicsRequest(timeout_ms=1000, topic_names=names(count)), 4),
        (DescribeGroupsRequest(groups=names(count)), 1),
        (DeleteGroupsRequest(groups_names=names(count)), 1),
        *of_transactions(count),
    ]


KINDS = [type(request).__name__ for request, _ in requests(0)]


def answered(response: Any) -> Sequence[Any]:
    """The things that a response answers for, in order."""
    if isinstance(response, WriteTxnMarkersResponse):
        (response,) = response.markers
    for field in ("topics", "results", "responses", "groups", "results_by_topic_v3_and_below"):
        if hasattr(response, field):
            found: Sequence[Any] = getattr(response, field)
            return found
    raise AssertionError(response)


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_others_have_their_turn_after_each_thing(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    """With turns of no time, a request of three hundred things takes as many; all are answered."""
    request, version = requests(300)[kind]
    if isinstance(request, OffsetFetchRequest):
        find(wire, "group")  # Only who coordinates a group says something of each topic.
    taken = 0
    original = CooperativeScheduler._run_time_slice

    def count(self: CooperativeScheduler, *args: Any, **more: Any) -> None:
        nonlocal taken
        taken += 1
        original(self, *args, **more)

    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", 0.0)
    monkeypatch.setattr(CooperativeScheduler, "_run_time_slice", count)
    assert len(answered(wire.ask(request, version))) == 300
    assert taken >= 300


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_very_large_requests_are_decoded_in_a_thread(
    node: BrokerServer, wire: Wire, kind: int
) -> None:
    """While the thread for it is busy they wait, and others are served."""
    request, version = requests(AT_ONCE + 1)[kind]
    if isinstance(request, OffsetFetchRequest):
        find(wire, "group")
    held = threading.Event()
    occupy(node, held)
    try:
        wire.send(request, version)
        with Wire(port_of(node)) as other:
            for _ in range(3):
                assert other.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    finally:
        held.set()
    _, answer = wire.receive(registry.api(request.api_key).response, version)
    assert len(answered(answer)) == AT_ONCE + 1


def test_a_very_large_produce_is_stored_in_order(wire: Wire, topic: str) -> None:
    """The same partition over and over: one answer each, and what comes behind it is behind it."""
    request = produce_request(topic, SOUND)
    request.topic_data[0].partition_data *= AT_ONCE + 1
    wire.socket.sendall(wire.frame(request, 9) + wire.frame(produce_request(topic, SOUND), 9))
    _, many = wire.receive(ProduceResponse, 9)
    offsets = [answer.base_offset for answer in many.responses[0].partition_responses]
    assert offsets == list(range(AT_ONCE + 1))
    _, one = wire.receive(ProduceResponse, 9)
    assert one.responses[0].partition_responses[0].base_offset == AT_ONCE + 1


def test_a_fetch_of_very_many_partitions_brings_records(wire: Wire, topic: str) -> None:
    """Among very many that do not exist, and are told last."""
    wire.produce(topic, SOUND)
    unknown = [(name, 0, 0) for name in names(AT_ONCE)]
    answer = wire.ask(fetch_request([*unknown, (topic, 0, 0)]), 11)
    assert answer.responses[0].topic == topic
    assert bytes(answer.responses[0].partitions[0].records)[-len(SOUND) + 20 :] == SOUND[20:]


def test_metadata_of_very_many_partitions_is_encoded_in_a_thread(
    node: BrokerServer, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the thread for it is busy others are served; the answer is the same, and is kept."""
    partitions = 3 * metadata.KEPT_PARTITIONS_MIN
    wire.create_topic("many", partitions=partitions)
    request = MetadataRequest(topics=None)
    version = 12
    monkeypatch.setattr(metadata, "ENCODED_AT_ONCE", partitions - 1)
    held = threading.Event()
    occupy(node, held)
    try:
        wire.socket.sendall(
            wire.frame(request, version) + wire.frame(ApiVersionsRequest(), 0),
        )
        with Wire(port_of(node)) as other:
            for _ in range(3):
                assert other.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
    finally:
        held.set()
    _, beside = wire.receive(MetadataResponse, version)
    wire.receive(ApiVersionsResponse, 0)  # In order.
    assert len(node.broker.image.memo[metadata.__name__, "bodies"]) == 1
    assert wire.ask(request, version) == beside
    node.broker.image.memo.clear()
    monkeypatch.setattr(metadata, "ENCODED_AT_ONCE", partitions)
    assert wire.ask(request, version) == beside
    (many,) = (topic for topic in beside.topics if topic.name == "many")
    assert len(many.partitions) == partitions


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (
            UpdateMetadataRequest(
                controller_epoch=-5,
                topic_states=[
                    UpdateMetadataTopicState(
                        topic_name="many",
                        partition_states=[
                            UpdateMetadataPartitionState(partition_index=number)
                            for number in range(AT_ONCE + 1)
                        ],
                    )
                ],
            ),
            7,
        ),
        (
            LeaderAndIsrRequest(
                controller_epoch=-5,
                topic_states=[
                    LeaderAndIsrTopicState(
                        topic_name="many",
                        partition_states=[
                            LeaderAndIsrPartitionState(partition_index=number)
                            for number in range(AT_ONCE + 1)
                        ],
                    )
                ],
            ),
            5,
        ),
        (
            StopReplicaRequest(
                controller_epoch=-5,
                topic_states=[
                    StopReplicaTopicState(
                        topic_name="many",
                        partition_states=[
                            StopReplicaPartitionState(partition_index=number)
                            for number in range(AT_ONCE + 1)
                        ],
                    )
                ],
            ),
            3,
        ),
        (
            AlterPartitionRequest(
                topics=[
                    AlterPartitionRequestTopicData(
                        partitions=[
                            AlterPartitionRequestPartitionData(partition_index=number)
                            for number in range(AT_ONCE + 1)
                        ]
                    )
                ]
            ),
            2,
        ),
    ],
    ids=lambda it: type(it).__name__,
)
def test_requests_of_brokers_name_all_partitions_there_are(
    wire: Wire, request_: Message, version: int
) -> None:
    """A controller's first, or ISR changes after a broker failed: here, of a stale epoch."""
    assert wire.ask(request_, version).error_code not in (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )


def test_a_follower_asks_for_the_epochs_of_very_many_partitions(wire: Wire, topic: str) -> None:
    """Of all that it follows from one leader."""
    asked = [OffsetForLeaderPartition(partition=0)] * (AT_ONCE + 1)
    topics = [OffsetForLeaderTopic(topic=topic, partitions=asked)]
    answer = wire.ask(OffsetForLeaderEpochRequest(topics=topics), 4)
    assert len(answer.topics[0].partitions) == AT_ONCE + 1


def test_a_malformed_large_request_closes_the_connection(wire: Wire) -> None:
    """It is found in the thread."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names(AT_ONCE + 1)],
        allow_auto_topic_creation=False,
    )
    frame = bytearray(wire.frame(request, 4))
    frame[-4:-2] = b"\xff\xfe"  # Within the last name: no UTF-8.
    wire.socket.sendall(frame)
    assert wire.closed_by_broker()


def test_very_many_items_of_other_requests_are_refused(wire: Wire) -> None:
    """Very many states of groups, say."""
    wire.send(ListGroupsRequest(states_filter=names(AT_ONCE + 1)), 4)
    assert wire.closed_by_broker()


def test_a_closed_connection_frees_its_place_and_bytes(node: BrokerServer, topic: str) -> None:
    """A request whose client has gone keeps neither its place nor its bytes."""
    held = threading.Event()
    occupy(node, held)
    request, version = requests(AT_ONCE + 1)[0]
    with Wire(port_of(node)) as leaver, Wire(port_of(node)) as stays:
        leaver.send(request, version)
        leaver.socket.close()
        stays.send(request, version)
        held.set()
        _, answer = stays.receive(MetadataResponse, version)
        assert len(answer.topics) == AT_ONCE + 1
    assert node.broker.heavy.waiting_bytes == 0


def test_a_request_that_waits_for_the_controller_delays_no_other(
    node: BrokerServer, wire: Wire
) -> None:
    """While ZooKeeper is away, say: metadata, offsets and records of many partitions are served."""
    held = threading.Event()
    node.broker.controller._thread.submit(held.wait, seconds(RUN))
    deletion = DeleteTopicsRequest(timeout_ms=1000, topic_names=names(AT_ONCE + 1))
    request, version = requests(AT_ONCE + 1)[0]
    try:
        wire.send(deletion, 4)
        with Wire(port_of(node)) as other:
            assert len(other.ask(request, version).topics) == AT_ONCE + 1
            assert not held.is_set()
    finally:
        held.set()
    _, answer = wire.receive(registry.api(deletion.api_key).response, 4)
    assert len(answered(answer)) == AT_ONCE + 1
