"""StopReplica: replicas are given up, and deleted where that is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

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
from tests.broker.server.running import Wire, loop_of, port_of, running_node
from tests.waiting import ANSWER, seconds, wait_for

Result = TypeVar("Result")


def on_loop(node: BrokerServer, work: Callable[[], Result]) -> Result:
    """What `work` gives on the event loop of a node."""

    async def do() -> Result:
        return work()

    return asyncio.run_coroutine_threadsafe(do(), loop_of(node)).result(seconds(ANSWER))


def raising(error: Exception) -> Callable[..., NoReturn]:
    """What raises an error, whatever it is called with."""

    def fail(*_: object) -> NoReturn:
        raise error

    return fail


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


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (None, ErrorCode.NONE),
        (OSError("no rename"), ErrorCode.KAFKA_STORAGE_ERROR),
        (ZeroDivisionError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_deletion_is_confirmed_when_the_log_is_gone(
    tmp_path: Path, failure: Exception | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a truncation: confirmed before, a crash would bring the log back.

    Where the log cannot be deleted then, the controller is told so.
    """
    tp = TopicPartition("t", 0)
    with running_node(tmp_path) as node, ThreadPoolExecutor() as pool:
        with Wire(port_of(node)) as wire:
            wire.create_topic("t")
        partition = node.broker.replicas.get(tp)
        assert partition is not None
        directory = partition.log.directory
        cut: Future[object] = Future()
        on_loop(node, lambda: partition.begin_cut(cut))
        assert ask(node, stop(False, partition.leader_epoch)) == ErrorCode.NONE, "at once"
        answer = pool.submit(ask, node, stop(True, -2))
        wait_for(
            "both to wait for the truncation",
            lambda: on_loop(node, lambda: len(node.broker.replicas._after_cut.get(tp, ()))),
            until=lambda waiting: waiting == 2,
        )
        assert directory.exists()
        assert not answer.done()
        if failure is not None:
            monkeypatch.setattr(node.broker.logs, "delete", raising(failure))
        cut.set_result(None)
        on_loop(node, lambda: partition.end_cut(cut))
        assert answer.result(seconds(ANSWER)) == expected
        assert directory.exists() is (failure is not None)


def test_an_earlier_controller_and_others_are_refused() -> None:
    """As a whole."""
    cluster = Cluster(2)
    answer = cluster.ask(2, handle, stop(True, 0, controller_epoch=0), HANDLER.versions.max)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = cluster.ask(2, handle, stop(True, 0), HANDLER.versions.max, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
