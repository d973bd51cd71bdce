"""Changes of partitions' states, as writes and in the next image."""

from uuid import UUID

from barnabas_broker.cluster.image import MetadataImage, PartitionState, TopicImage
from barnabas_broker.controller.state_changes import by_partition, changed_states, write_groups
from barnabas_broker.zk.znodes import LeaderAndIsr, ReplicaAssignment
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

STATE = PartitionState(
    replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=3, controller_epoch=1, partition_epoch=5
)
IMAGE = MetadataImage(
    cluster_id="c",
    topics={name: TopicImage(name, UUID(int=1), (STATE, STATE)) for name in ("a", "b")},
)
A0, A1, B1 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 1)
NEXT = LeaderAndIsr(leader=2, leader_epoch=4, isr=(2,), controller_epoch=1)


def test_each_partition_is_written_by_itself_but_those_of_a_topic_that_moves() -> None:
    """By the version that the decision went by; the topic's znode comes last."""
    placed = {A0: ReplicaAssignment((2, 3))}
    groups = write_groups(IMAGE, {A0: NEXT, A1: NEXT, B1: NEXT}, placed)
    assert {group: [each.path for each in operations] for group, operations in groups.items()} == {
        "a": [
            "/brokers/topics/a/partitions/0/state",
            "/brokers/topics/a/partitions/1/state",
            "/brokers/topics/a",
        ],
        B1: ["/brokers/topics/b/partitions/1/state"],
    }
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    changes = {A0: NEXT, A1: NEXT, B1: NEXT}
    assert by_partition({"a": error}, changes) == {A0: error, A1: error}
    assert by_partition({B1: error}, changes) == {B1: error}


def test_the_next_image_has_what_was_written() -> None:
    """And the replicas that cannot be used, also of partitions that are as they were."""
    placed = {A0: ReplicaAssignment((2, 3), adding=(3,))}
    states = changed_states(IMAGE, {A0: NEXT}, placed, {B1: frozenset({2, 1})})
    image = IMAGE.with_partitions(states)
    first, second = image.topics["a"], image.topics["b"]
    moved = first.partitions[0]
    assert (moved.leader, moved.replicas, moved.adding) == (2, (2, 3), (3,))
    assert moved.partition_epoch == 6
    assert first.partitions[1] is STATE
    assert [each.offline for each in second.partitions] == [(), (1, 2)]
