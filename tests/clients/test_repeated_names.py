"""Requests that name the same thing again and again: it is described once.

Apache's broker describes it each time, so that kilobytes of request become gigabytes of response.
What is tried here is everything whose description is much larger than its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages import describe_topic_partitions
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas_kafka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
)
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas_kafka.protocol.schema import Request
from barnabas_kafka.records.builder import build_batch
from tests.clients import START_MS
from tests.clients.brokers import Broker
from tests.clients.wire import Wire, frame, produce

TIMES = 1000
TOPIC, GROUP, MODERN, OFFSETS, TRANSACTION = (
    "repeated-topic", "repeated-group", "repeated-modern", "repeated-offsets", "repeated-id",
)  # fmt: skip
PARTITIONS = 20
METADATA = "m" * 4000
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4


def configs(kind: int, name: str, times: int) -> Request:
    """DescribeConfigs, as much as there is."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    return DescribeConfigsRequest(
        resources=[resource] * times, include_synonyms=True, include_documentation=True
    )


def offsets_of(group_times: int, topic_times: int, partition_times: int) -> Request:
    """OffsetFetch of one partition."""
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[1] * partition_times)
    group = OffsetFetchRequestGroup(group_id=OFFSETS, topics=[topic] * topic_times)
    return OffsetFetchRequest(groups=[group] * group_times)


def older_offsets(times: int) -> Request:
    """OffsetFetch of one group, before several could be asked for."""
    topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[1] * times)
    return OffsetFetchRequest(group_id=OFFSETS, topics=[topic, topic])


def everything(times: int) -> Request:
    """OffsetFetch of all that a group has committed."""
    group = OffsetFetchRequestGroup(group_id=OFFSETS, topics=None)
    return OffsetFetchRequest(groups=[group] * times)


def producers(topic_times: int, partition_times: int) -> Request:
    """DescribeProducers of one partition."""
    topic = TopicRequest(name=TOPIC, partition_indexes=[0] * partition_times)
    return DescribeProducersRequest(topics=[topic] * topic_times)


def partitions(times: int) -> Request:
    """DescribeTopicPartitions."""
    topic = describe_topic_partitions.TopicRequest(name=TOPIC)
    return DescribeTopicPartitionsRequest(topics=[topic] * times)


NAMING: dict[str, tuple[int, Callable[[int], Request]]] = {
    "DescribeGroups": (5, lambda times: DescribeGroupsRequest(groups=[GROUP] * times)),
    "ConsumerGroupDescribe": (
        0, lambda times: ConsumerGroupDescribeRequest(group_ids=[MODERN] * times)
    ),
    "DescribeTransactions": (
        0, lambda times: DescribeTransactionsRequest(transactional_ids=[TRANSACTION] * times)
    ),
    "DescribeConfigs of a topic": (4, lambda times: configs(TOPIC_RESOURCE, TOPIC, times)),
    "DescribeConfigs of a broker": (4, lambda times: configs(BROKER_RESOURCE, "0", times)),
    "OffsetFetch, groups": (8, everything),
    "OffsetFetch, groups and partitions": (9, lambda times: offsets_of(times, 1, 1)),
    "OffsetFetch, topics": (8, lambda times: offsets_of(1, times, 1)),
    "OffsetFetch, partitions": (8, lambda times: offsets_of(1, 1, times)),
    "OffsetFetch, partitions of one group": (5, older_offsets),
    "DescribeProducers, topics": (0, lambda times: producers(times, 1)),
    "DescribeProducers, partitions": (0, lambda times: producers(1, times)),
    "DescribeTopicPartitions": (0, partitions),
}  # fmt: skip


@pytest.fixture(scope="module")
def described(broker: Broker, make_topic: Callable[..., str]) -> Iterator[Broker]:
    """A broker with one of everything that can be described."""
    make_topic(partitions=PARTITIONS, name=TOPIC)
    with Wire(broker.bootstrap) as wire:
        for key, kind in ((GROUP, 0), (TRANSACTION, 1)):
            found = wire.ask(
                FindCoordinatorRequest(key=key, key_type=kind), FindCoordinatorResponse, 1
            )
            assert found.error_code == ErrorCode.NONE
        join(wire)
        commit(wire)
        begin_transaction(wire)
        subscribe(wire)
        yield broker


def join(wire: Wire) -> None:
    """A group of the classic protocol with a member that tells much about itself."""
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(10_000))],
    )
    joined = wire.ask(request, JoinGroupResponse, 3)
    assert joined.error_code == ErrorCode.NONE
    assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"everything")
    synced = wire.ask(
        SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[assigned],
        ),
        SyncGroupResponse,
        2,
    )
    assert synced.error_code == ErrorCode.NONE


def subscribe(wire: Wire) -> None:
    """A group of the consumer protocol."""
    beat = ConsumerGroupHeartbeatRequest(
        group_id=MODERN,
        member_id="",
        member_epoch=0,
        rebalance_timeout_ms=300_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    answer = wire.ask(beat, ConsumerGroupHeartbeatResponse, 0)
    assert answer.error_code == ErrorCode.NONE


def commit(wire: Wire) -> None:
    """Offsets with as much metadata as they may have."""
    each = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1, committed_metadata=METADATA
        )
        for index in range(PARTITIONS)
    ]
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=each)
    answer = wire.ask(
        OffsetCommitRequest(group_id=OFFSETS, topics=[topic]), OffsetCommitResponse, 7
    )
    assert {it.error_code for it in answer.topics[0].partitions} == {ErrorCode.NONE}


def begin_transaction(wire: Wire) -> None:
    """An open transaction, and a producer that the first partition knows."""
    granted = wire.ask(
        InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=300_000),
        InitProducerIdResponse,
        4,
    )
    assert granted.error_code == ErrorCode.NONE
    topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(PARTITIONS)))
    added = wire.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTION,
            v3_and_below_producer_id=granted.producer_id,
            v3_and_below_producer_epoch=granted.producer_epoch,
            v3_and_below_topics=[topic],
        ),
        AddPartitionsToTxnResponse,
        3,
    )
    answered = added.results_by_topic_v3_and_below[0].results_by_partition
    assert {it.partition_error_code for it in answered} == {ErrorCode.NONE}
    producer = wire.ask(InitProducerIdRequest(), InitProducerIdResponse, 4)
    batch = build_batch(
        [(START_MS, None, b"value", ())],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
    )
    sent = wire.ask(produce(TOPIC, batch), ProduceResponse, 8)
    assert sent.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def size_of_answer(broker: Broker, request: Request, version: int) -> int:
    """How many bytes come back."""
    with Wire(broker.bootstrap) as wire:
        wire.send(frame(request, version))
        return len(wire.receive_frame())


@pytest.mark.parametrize("what", NAMING)
def test_a_repeated_name_is_described_once(described: Broker, what: str) -> None:
    """The answer is as large as that to whoever names it once."""
    version, naming = NAMING[what]
    once = size_of_answer(described, naming(1), version)
    assert size_of_answer(described, naming(TIMES), version) == once


def test_a_repeated_group_returns_all_its_topics(described: Broker) -> None:
    """Whoever splits a question about a group in two has all the answers, at once."""
    halves = [
        OffsetFetchRequestGroup(
            group_id=OFFSETS,
            topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[index])],
        )
        for index in (0, 1)
    ]
    with Wire(described.bootstrap) as wire:
        (group,) = wire.ask(OffsetFetchRequest(groups=halves), OffsetFetchResponse, 8).groups
        whole = OffsetFetchRequestGroup(group_id=OFFSETS, topics=None)
        every = OffsetFetchRequest(groups=[*halves, whole, *halves])
        (complete,) = wire.ask(every, OffsetFetchResponse, 8).groups
    reported = {it.partition_index: it.metadata for it in group.topics[0].partitions}
    assert reported == dict.fromkeys((0, 1), METADATA)
    assert len(complete.topics[0].partitions) == PARTITIONS


def test_a_repeated_resource_returns_all_its_settings(described: Broker) -> None:
    """Whoever names a resource twice, with other keys, has the settings of both."""
    resources = [
        DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configuration_keys=keys
        )
        for keys in (["retention.ms"], ["cleanup.policy"])
    ]
    everything_of_it = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=TOPIC, configuration_keys=[]
    )
    with Wire(described.bootstrap) as wire:
        both = DescribeConfigsRequest(resources=resources)
        (two,) = wire.ask(both, DescribeConfigsResponse, 4).results
        every = DescribeConfigsRequest(resources=[*resources, everything_of_it, *resources])
        (complete,) = wire.ask(every, DescribeConfigsResponse, 4).results
    assert {each.name for each in two.configs} == {"retention.ms", "cleanup.policy"}
    assert len(complete.configs) > len(two.configs)
