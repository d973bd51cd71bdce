"""ElectLeaders: an answer for each partition."""

from __future__ import annotations

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.elect_leaders import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster

WANTED = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0, 5])])


@pytest.mark.parametrize("version", range(HANDLER.versions.min, HANDLER.versions.max + 1))
def test_each_partition_is_answered_for(version: int) -> None:
    """By the controller; others say that they are none."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", assignments=[(0, (1, 2))]))
    for broker, expected in (
        (1, [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        (2, [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER]),
    ):
        answer = cluster.ask(broker, handle, WANTED, version)
        assert codec.decode(ElectLeadersResponse, codec.encode(answer, version), version) == answer
        (topic,) = answer.replica_election_results
        assert [each.error_code for each in topic.partition_result] == expected


def test_a_non_controller_returns_not_controller_for_each_partition() -> None:
    """Of each that it knows, as Kafka's brokers do; there is nothing wrong with the request."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", assignments=[(0, (1, 2)), (1, (2, 1))]))
    answer = cluster.ask(2, handle, ElectLeadersRequest(topic_partitions=None), 2)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = answer.replica_election_results
    codes = [each.error_code for each in topic.partition_result]
    assert (topic.topic, codes) == ("t", [ErrorCode.NOT_CONTROLLER] * 2)


def test_invalid_election_types_and_unauthorized_callers() -> None:
    """As a whole, and of each partition."""
    cluster = Cluster(1)
    latest = HANDLER.versions.max
    odd = ElectLeadersRequest(election_type=9, topic_partitions=WANTED.topic_partitions)
    denying = Denying((AclOperation.ALTER, ResourceType.CLUSTER, None))
    for request, authorizer, expected in (
        (odd, None, ErrorCode.INVALID_REQUEST),
        (WANTED, denying, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ):
        answer = cluster.ask(1, handle, request, latest, authorizer=authorizer)
        (topic,) = answer.replica_election_results
        assert [each.error_code for each in topic.partition_result] == [expected, expected]
        assert answer.error_code == expected
