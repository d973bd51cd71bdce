"""What to make of partition directories that belong to no topic."""

from uuid import UUID

from barnabas_broker.cluster.image import MetadataImage, PartitionState, TopicImage
from barnabas_broker.controller.adoption import Adoption, plan_adoptions
from barnabas_broker.zk.znodes import LeaderAndIsr
from barnabas_kafka.ids import TopicPartition

STATE = PartitionState((1,), (1,), 1, 0, 1)
IMAGE = MetadataImage(cluster_id="c").with_changes(
    put=(TopicImage("known", UUID(int=5), (STATE, STATE)),)
)
Found = dict[TopicPartition, UUID | None]


def plan(
    found: Found, epochs: dict[TopicPartition, int] | None = None, ignored: tuple[str, ...] = ()
) -> list[Adoption]:
    """Plan for broker 1 as controller of epoch 9."""
    return plan_adoptions(
        found, IMAGE, broker_id=1, controller_epoch=9, epochs=epochs or {}, ignored=ignored
    )


def state(epoch: int) -> LeaderAndIsr:
    """A partition that this broker leads."""
    return LeaderAndIsr(1, epoch, (1,), 9)


def test_a_topic_is_as_large_as_its_highest_partition() -> None:
    """Missing numbers are noted; the id is the first that any directory knows."""
    found: Found = {
        TopicPartition("t", 3): UUID(int=8),
        TopicPartition("t", 0): None,
        TopicPartition("t", 2): UUID(int=7),
    }
    epochs = {TopicPartition("t", 2): 6}
    assert plan(found, epochs) == [
        Adoption(
            topic="t",
            id=UUID(int=7),
            first=0,
            states=(state(0), state(0), state(7), state(0)),
            missing=(1,),
        )
    ]


def test_unknown_partitions_are_adopted_and_known_ones_kept() -> None:
    """Directories of a topic's own partitions are no news."""
    own: Found = {TopicPartition("known", 0): None, TopicPartition("known", 1): None}
    assert plan(own) == []
    adoption = plan(own | {TopicPartition("known", 2): None})[0]
    assert (adoption.first, adoption.states, adoption.missing) == (2, (state(0),), ())


def test_topics_that_are_being_deleted_are_not_brought_back() -> None:
    """Their directories are what a crash left of a deletion."""
    assert plan({TopicPartition("gone", 0): None}, ignored=("gone",)) == []
