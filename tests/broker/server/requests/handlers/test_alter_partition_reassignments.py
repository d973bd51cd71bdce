"""AlterPartitionReassignments: an answer for each partition when the move has begun."""

from __future__ import annotations

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.alter_partition_reassignments import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster

WANTED = AlterPartitionReassignmentsRequest(
    topics=[
        ReassignableTopic(
            name="t",
            partitions=[
                ReassignablePartition(partition_index=0, replicas=[2]),
                ReassignablePartition(partition_index=1, replicas=None),
            ],
        )
    ]
)


@pytest.mark.parametrize("version", range(HANDLER.versions.min, HANDLER.versions.max + 1))
def test_each_partition_is_answered_for(version: int) -> None:
    """In every version."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", assignments=[(0, (1,)), (1, (1,))]))
    answer = cluster.ask(1, handle, WANTED, version)
    encoded = codec.encode(answer, version)
    assert codec.decode(AlterPartitionReassignmentsResponse, encoded, version)
    (topic,) = answer.responses
    assert [each.error_code for each in topic.partitions] == [
        ErrorCode.NONE,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ]
    assert cluster.active_controller.image.topics["t"].partitions[0].adding == (2,)


def test_unauthorized_and_non_controller_errors() -> None:
    """As a whole."""
    cluster = Cluster(2)
    latest = HANDLER.versions.max
    assert cluster.ask(2, handle, WANTED, latest).error_code == ErrorCode.NOT_CONTROLLER
    denying = Denying((AclOperation.ALTER, ResourceType.CLUSTER, None))
    answer = cluster.ask(1, handle, WANTED, latest, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
