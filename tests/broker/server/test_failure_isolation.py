"""One partition with which something unforeseen fails, among others in the same request."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas_broker.replica.manager import ReplicaManager
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import LATEST_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
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
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, fetch_request

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
