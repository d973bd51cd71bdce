"""What a broker answers about partitions that other brokers have."""

from collections.abc import Callable

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from tests.clients.wire import Wire, fetch, produce, some_batch
from tests.cluster.running import Cluster

Ask = Callable[[Wire, str], int]


def by_produce(wire: Wire, topic: str) -> int:
    """The error of a record."""
    answer = wire.ask(produce(topic, some_batch()), ProduceResponse, 9)
    return answer.responses[0].partition_responses[0].error_code


def by_fetch(wire: Wire, topic: str) -> int:
    """The error of a read."""
    return wire.ask(fetch(topic, 0), FetchResponse, 11).responses[0].partitions[0].error_code


def by_list_offsets(wire: Wire, topic: str) -> int:
    """The error of the question where the log ends."""
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return wire.ask(request, ListOffsetsResponse, 7).topics[0].partitions[0].error_code


def by_offset_for_leader_epoch(wire: Wire, topic: str) -> int:
    """The error of the question where an epoch ends."""
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    )
    return wire.ask(request, OffsetForLeaderEpochResponse, 4).topics[0].partitions[0].error_code


@pytest.mark.parametrize("ask", [by_produce, by_fetch, by_list_offsets, by_offset_for_leader_epoch])
def test_partitions_of_others_are_not_unknown(cluster: Cluster, topic: str, ask: Ask) -> None:
    """Clients ask again who leads them; of what does not exist some say so to their users."""
    cluster.create(topic, replicas=1)
    (leader,) = cluster.isr(topic)
    others = [broker for broker in cluster.brokers if broker != leader]
    for broker in others:
        cluster.leadership(topic, cluster.address(broker))
        with Wire(cluster.address(broker)) as wire:
            assert ask(wire, topic) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert ask(wire, f"{topic}-unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
