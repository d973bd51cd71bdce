"""Elections and moves where a broker is alone: there is little to do, and Kafka's tools ask it."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from tests.broker.server.running import Wire
from tests.clients.wire import some_batch


@pytest.mark.parametrize("version", range(3))
def test_a_leader_of_all_partitions_needs_no_election(wire: Wire, topic: str, version: int) -> None:
    """Each partition that is named is answered for; of all, only what an election changes."""
    named = [TopicPartitions(topic=topic, partitions=[0, 9])]
    answer = wire.ask(ElectLeadersRequest(topic_partitions=named), version)
    ((led, missing),) = (each.partition_result for each in answer.replica_election_results)
    assert led.error_code == ErrorCode.ELECTION_NOT_NEEDED
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = wire.ask(ElectLeadersRequest(topic_partitions=None), version)
    assert (answer.error_code, answer.replica_election_results) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ([0], ErrorCode.NONE),
        ([7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_partitions_stay_where_they_are(
    wire: Wire, topic: str, replicas: list[int] | None, expected: ErrorCode
) -> None:
    """A move to where a partition is ends at once, and there is nowhere else to go."""
    moved = ReassignableTopic(
        name=topic, partitions=[ReassignablePartition(partition_index=0, replicas=replicas)]
    )
    answer = wire.ask(AlterPartitionReassignmentsRequest(topics=[moved]), 0)
    assert answer.error_code == ErrorCode.NONE
    assert answer.responses[0].partitions[0].error_code == expected
    answer = wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])
    assert wire.produce(topic, some_batch()).error_code == ErrorCode.NONE
