"""StopReplica: replicas are given up, and deleted where that is asked."""

from __future__ import annotations

from pathlib import Path

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.handlers.stop_replica import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster
from tests.broker.server.running import Wire, port_of, running_node


def stop(delete: bool, epoch: int, controller_epoch: int = 5) -> StopReplicaRequest:
    """Partition 0 of topic t is to be given up."""
    state = StopReplicaPartitionState(
        partition_index=0, leader_epoch=epoch, delete_partition=delete
    )
    return StopReplicaRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        topic_states=[StopReplicaTopicState(topic_name="t", partition_states=[state])],
        delete_partitions=delete,
        topics=[StopReplicaTopicV1(name="t", partition_indexes=[0])],
    )


def ask(
    node: BrokerServer, request: StopReplicaRequest, version: int = HANDLER.versions.max
) -> int:
    """The error that a member answers with which holds what the node does."""
    answer = Cluster(2).ask(2, handle, request, version, replicas=node.broker.replicas)
    assert answer.error_code == ErrorCode.NONE
    (partition,) = answer.partition_errors
    assert (partition.topic_name, partition.partition_index) == ("t", 0)
    return int(partition.error_code)


def test_a_replica_is_given_up_and_then_deleted(tmp_path: Path) -> None:
    """An older leader epoch stops nothing; a log that is not held any more is deleted, too."""
    tp = TopicPartition("t", 0)
    with running_node(tmp_path) as node:
        with Wire(port_of(node)) as wire:
            wire.create_topic("t")
        known = node.broker.replicas.get(tp)
        assert known is not None
        if known.leader_epoch > 0:
            assert ask(node, stop(False, known.leader_epoch - 1)) == ErrorCode.FENCED_LEADER_EPOCH
        assert ask(node, stop(False, known.leader_epoch)) == ErrorCode.NONE
        assert node.broker.replicas.get(tp) is None
        assert tp in node.broker.logs.logs
        assert ask(node, stop(True, -2)) == ErrorCode.NONE
        assert tp not in node.broker.logs.logs
        assert ask(node, stop(True, -2), version=1) == ErrorCode.NONE


def test_an_earlier_controller_and_others_are_refused() -> None:
    """As a whole."""
    cluster = Cluster(2)
    answer = cluster.ask(2, handle, stop(True, 0, controller_epoch=0), HANDLER.versions.max)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = cluster.ask(2, handle, stop(True, 0), HANDLER.versions.max, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
