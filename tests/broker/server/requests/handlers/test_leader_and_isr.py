"""LeaderAndIsr: an answer for each partition, by topic name or id."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.peers.controller_channel_manager import storage_answers
from barnabas_broker.server.requests.handlers.leader_and_isr import HANDLER, TOPIC_IDS_SINCE, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster
from tests.broker.log.disk import Disk, using
from tests.broker.replica.leading import finished
from tests.broker.replica.test_manager import Bench

ID = UUID(int=5)


def request(controller_epoch: int = 5) -> LeaderAndIsrRequest:
    """Two partitions of a topic, of which one lies on broker 2."""
    states = [
        LeaderAndIsrPartitionState(
            partition_index=number, leader=replica, leader_epoch=3, isr=[replica],
            replicas=[replica],
        )
        for number, replica in enumerate((1, 2))
    ]  # fmt: skip
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        topic_states=[LeaderAndIsrTopicState(topic_name="t", topic_id=ID, partition_states=states)],
    )


class Replicas:
    """What broker 2 holds: all it is told of, but for a disk that takes nothing."""

    def __init__(self, *counted_out: TopicPartition) -> None:
        self._counted_out = counted_out
        self.expected: list[tuple[bool, list[TopicPartition]]] = []

    def expect(self, partitions: list[TopicPartition]) -> None:
        """They are on their way."""
        self.expected.append((True, partitions))

    def expect_no_more(self, partitions: list[TopicPartition]) -> None:
        """They are here."""
        self.expected.append((False, partitions))

    def get(self, tp: TopicPartition) -> object:
        """The replica."""
        return tp

    def is_counted_out(self, tp: TopicPartition) -> bool:
        """Whether its log directory takes nothing."""
        return tp in self._counted_out


def test_an_error_with_one_partition_is_that_of_no_other() -> None:
    """Whatever it is."""

    class Faulty(Replicas):
        def is_counted_out(self, tp: TopicPartition) -> bool:
            if tp.partition == 1:
                raise ValueError("a defect")
            return False

    asked = request()
    for state in asked.topic_states[0].partition_states:
        state.leader, state.isr, state.replicas = 2, [2], [2]
    answer = Cluster(2).ask(2, handle, asked, HANDLER.versions.max, replicas=Faulty())
    (topic,) = answer.topics
    codes = [each.error_code for each in topic.partition_errors]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_new_leader_expects_its_partitions() -> None:
    """Clients that hear of it elsewhere are not told that it does not exist."""
    replicas = Replicas()
    Cluster(2).ask(2, handle, request(), HANDLER.versions.max, replicas=replicas)
    led = [TopicPartition("t", 1)]
    assert replicas.expected == [(True, led), (False, led)]


@pytest.mark.parametrize("version", range(HANDLER.versions.min, HANDLER.versions.max + 1))
def test_only_local_replicas_become_leaders(version: int) -> None:
    """In every version."""
    cluster = Cluster(2)
    answer = cluster.ask(2, handle, request(), version, replicas=Replicas())
    assert codec.decode(LeaderAndIsrResponse, codec.encode(answer, version), version)
    errors = answer.partition_errors
    if version >= TOPIC_IDS_SINCE:
        (topic,) = answer.topics
        assert topic.topic_id == ID
        errors = topic.partition_errors
    assert [each.error_code for each in errors] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert [each.leader for each in cluster.controllers[2].image.topics["t"].partitions] == [-1, 2]


def test_an_earlier_controller_and_others_are_refused() -> None:
    """As a whole."""
    cluster = Cluster(2)
    answer = cluster.ask(2, handle, request(0), HANDLER.versions.max, replicas=Replicas())
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = cluster.ask(2, handle, request(), HANDLER.versions.max, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.controllers[2].image.topics == {}


def test_a_replica_in_a_full_log_directory_gets_kafka_storage_error() -> None:
    """KAFKA_STORAGE_ERROR, and the controller goes on without it; it is taken all the same."""
    cluster = Cluster(2)
    lost = Replicas(TopicPartition("t", 1))
    answer = cluster.ask(2, handle, request(), HANDLER.versions.max, replicas=lost)
    (topic,) = answer.topics
    assert [each.error_code for each in topic.partition_errors] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ]
    assert cluster.controllers[2].image.topics["t"].partitions[1].leader == 2


def test_a_log_that_lacked_file_descriptors_leaves_its_replica_online(tmp_path: Path) -> None:
    """It is created soon, and no answer says so: the controller would do without it for good."""
    cluster, bench = Cluster(1), Bench(tmp_path)
    cluster.controllers[1].add_listener(lambda old, new: finished(bench.manager.on_image(old, new)))
    with using(Disk(tmp_path)) as disk:
        disk.fail("open", errno.EMFILE, path=".log", times=1)
        asked = request()
        answer = cluster.ask(1, handle, asked, HANDLER.versions.max, replicas=bench.manager)
        finished(bench.manager.retry_failed())
    assert bench.manager.led("t", 0).leader_epoch == 3
    assert storage_answers(asked, answer) == {}
