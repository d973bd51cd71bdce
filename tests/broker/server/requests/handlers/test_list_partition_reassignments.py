"""ListPartitionReassignments: what is being moved, of what was asked about or of all."""

from __future__ import annotations

from barnabas_broker.controller.events import ApiPartitionReassignment
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.list_partition_reassignments import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster

LATEST = HANDLER.versions.max


def test_moves_that_are_under_way() -> None:
    """With what they add and remove."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", assignments=[(0, (1,)), (1, (1,))]))
    cluster.process(ApiPartitionReassignment({TopicPartition("t", 1): [2]}))
    cluster.settle()
    answer = cluster.ask(1, handle, ListPartitionReassignmentsRequest(topics=None), LATEST)
    ((moving,),) = (topic.partitions for topic in answer.topics)
    assert (moving.partition_index, moving.replicas) == (1, [2, 1])
    assert (moving.adding_replicas, moving.removing_replicas) == ([2], [1])
    asked = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])]
    answer = cluster.ask(1, handle, ListPartitionReassignmentsRequest(topics=asked), LATEST)
    assert answer.topics == []


def test_unauthorized_and_non_controller_errors() -> None:
    """As a whole."""
    cluster = Cluster(2)
    request = ListPartitionReassignmentsRequest(topics=None)
    assert cluster.ask(2, handle, request, LATEST).error_code == ErrorCode.NOT_CONTROLLER
    denying = Denying((AclOperation.DESCRIBE, ResourceType.CLUSTER, None))
    answer = cluster.ask(1, handle, request, LATEST, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
