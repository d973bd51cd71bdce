"""AlterPartition: leaders ask the controller, by topic name or id, with or without epochs."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas_broker.controller.isr_changes import TOPIC_IDS_SINCE
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.alter_partition import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster


def shrink(cluster: Cluster, topic_id: UUID) -> AlterPartitionRequest:
    """Broker 2 wants to be alone in sync."""
    partition = AlterPartitionRequestPartitionData(
        new_isr=[2], new_isr_with_epochs=[BrokerState(broker_id=2)]
    )
    return AlterPartitionRequest(
        broker_id=2,
        broker_epoch=cluster.active_controller.image.brokers[2].epoch,
        topics=[
            AlterPartitionRequestTopicData(
                topic_name="t", topic_id=topic_id, partitions=[partition]
            )
        ],
    )


@pytest.mark.parametrize("version", range(HANDLER.versions.min, HANDLER.versions.max + 1))
def test_a_change_is_answered_with_the_state_that_it_leads_to(version: int) -> None:
    """In every version."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", assignments=[(0, (2, 1))]))
    request = shrink(cluster, cluster.image.topics["t"].id)
    answer = cluster.ask(1, handle, request, version)
    assert codec.decode(AlterPartitionResponse, codec.encode(answer, version), version)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.isr, partition.leader_id) == (0, [2], 2)
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)
    strange = cluster.ask(1, handle, shrink(cluster, UUID(int=77)), version)
    (partition,) = strange.topics[0].partitions
    by_id = version >= TOPIC_IDS_SINCE
    assert partition.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.NONE)


def test_a_broker_that_is_not_the_controller_refuses() -> None:
    """Others than the controller cannot be asked."""
    cluster = Cluster(2)
    request = shrink(cluster, UUID(int=1))
    latest = HANDLER.versions.max
    answer = cluster.ask(2, handle, request, latest)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = cluster.ask(1, handle, request, latest, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_replica_that_has_restarted_since_is_not_let_in() -> None:
    """It may have lost what it had when the leader heard it last; its state has not changed since.

    Leaders that run Apache Kafka in ZooKeeper mode tell no epochs, and are obeyed as before.
    """
    cluster = Cluster(3)
    cluster.create(NewTopic(name="t", assignments=[(0, (2, 1, 3))]))
    cluster.kill(3)
    cluster.start(3)
    before = cluster.image
    state = before.topics["t"].partitions[0]
    assert state.isr == (2, 1)

    def expand(epoch: int) -> AlterPartitionRequest:
        request = shrink(cluster, before.topics["t"].id)
        (wanted,) = request.topics[0].partitions
        wanted.leader_epoch, wanted.partition_epoch = state.leader_epoch, state.partition_epoch
        epochs = {2: before.brokers[2].epoch, 1: before.brokers[1].epoch, 3: epoch}
        wanted.new_isr_with_epochs = [
            BrokerState(broker_id=broker, broker_epoch=each) for broker, each in epochs.items()
        ]
        return request

    heard_before = expand(before.brokers[3].epoch)
    cluster.kill(3)
    cluster.start(3)
    assert cluster.image.topics["t"].partitions[0] == state
    refused = cluster.ask(1, handle, heard_before, HANDLER.versions.max)
    assert refused.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
    granted = cluster.ask(1, handle, expand(-1), HANDLER.versions.max)
    assert granted.topics[0].partitions[0].isr == [2, 1, 3]
