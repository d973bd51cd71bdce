"""What brokers are told of a change: to whom, in which request, and nothing twice."""

from dataclasses import replace
from uuid import UUID

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.controller.target_state import Orders, Sender, TargetState, orders

BROKERS = {
    number: BrokerRegistration(
        number, (Endpoint("INTERNAL", f"b{number}", 9090 + number),), f"r{number}", 100 + number
    )
    for number in (1, 2, 3)
}
SENDER = Sender(controller_id=1, controller_epoch=7, listener="INTERNAL")
STATE = PartitionState((2, 3), (2, 3), leader=2, leader_epoch=4, controller_epoch=6)
TOPIC = TopicImage("t", UUID(int=5), (STATE, replace(STATE, replicas=(1,), isr=(1,), leader=1)))
EMPTY = MetadataImage(cluster_id="c").with_changes(brokers=BROKERS)
VIEW = TargetState(EMPTY.with_changes(put=(TOPIC,)))


def to(broker: int, old: TargetState | None, new: TargetState) -> Orders:
    """What that broker is told."""
    return orders(new.image.brokers[broker], old, new, SENDER)


def changed(state: PartitionState, number: int = 0) -> TargetState:
    """The view with one partition in another state."""
    partitions = list(TOPIC.partitions)
    partitions[number] = state
    return TargetState(VIEW.image.with_changes(put=(replace(TOPIC, partitions=tuple(partitions)),)))


def test_a_new_broker_is_sent_everything() -> None:
    """All partitions and brokers, and what it holds; nothing it has is new to it."""
    received = to(3, None, VIEW)
    assert received.stop_replica is None
    assert received.leader_and_isr is not None
    assert received.leader_and_isr.broker_epoch == 103
    (topic,) = received.leader_and_isr.topic_states
    (partition,) = topic.partition_states
    assert (topic.topic_name, topic.topic_id) == ("t", UUID(int=5))
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 4, [2, 3])
    assert not partition.is_new
    assert [each.port for each in received.leader_and_isr.live_leaders] == [9092]
    assert received.update_metadata is not None
    assert [len(each.partition_states) for each in received.update_metadata.topic_states] == [2]
    assert [each.rack for each in received.update_metadata.live_brokers] == ["r1", "r2", "r3"]


def test_an_unchanged_state_is_not_sent_again() -> None:
    """Who was told a view is told nothing when it has not changed."""
    assert to(2, VIEW, VIEW) == Orders()
    assert to(2, VIEW, TargetState(VIEW.image.with_changes(put=(replace(TOPIC),)))) == Orders()


def test_a_restarted_broker_is_sent_everything_again() -> None:
    """A broker that was restarted has forgotten what it was told."""
    again = replace(BROKERS[2], epoch=200)
    new = TargetState(VIEW.image.with_changes(brokers=BROKERS | {2: again}))
    received = orders(again, VIEW, new, SENDER)
    assert received.leader_and_isr is not None
    assert received.leader_and_isr.broker_epoch == 200
    assert to(3, VIEW, new).leader_and_isr is None


def test_a_new_topic_is_new_to_its_replicas_only() -> None:
    """A replica may make an empty log for it; all others learn where it is."""
    received = to(2, TargetState(EMPTY), VIEW)
    assert received.leader_and_isr is not None
    assert received.leader_and_isr.topic_states[0].partition_states[0].is_new
    received = to(1, TargetState(EMPTY), changed(STATE))
    assert received.leader_and_isr is not None
    assert [
        each.partition_index for each in received.leader_and_isr.topic_states[0].partition_states
    ] == [1]
    assert received.update_metadata is not None


def test_a_change_of_in_sync_replicas_is_metadata_only() -> None:
    """Its leader asked for it, and followers need not know."""
    new = changed(replace(STATE, isr=(2,), partition_epoch=1))
    for broker in (1, 2, 3):
        received = to(broker, VIEW, new)
        assert received.leader_and_isr is None
        assert received.stop_replica is None
        assert received.update_metadata is not None
        (topic,) = received.update_metadata.topic_states
        assert [(each.isr, each.zk_version) for each in topic.partition_states] == [([2], 1)]


def test_a_new_leader_is_sent_to_the_replicas_and_in_metadata() -> None:
    """Replicas become leader or follower in the new epoch."""
    new = changed(replace(STATE, leader=3, leader_epoch=5))
    received = to(3, VIEW, new)
    assert received.leader_and_isr is not None
    partition = received.leader_and_isr.topic_states[0].partition_states[0]
    assert (partition.leader, partition.leader_epoch, partition.is_new) == (3, 5, False)
    assert to(1, VIEW, new).leader_and_isr is None
    assert to(1, VIEW, new).update_metadata is not None


def test_a_replica_that_was_removed_is_deleted_and_one_that_was_added_is_new() -> None:
    """As at the end of a reassignment."""
    new = changed(replace(STATE, replicas=(2, 1), isr=(2, 1), leader_epoch=5))
    removed = to(3, VIEW, new)
    assert removed.leader_and_isr is None
    assert removed.stop_replica is not None
    (stop,) = removed.stop_replica.topic_states[0].partition_states
    assert (stop.delete_partition, stop.leader_epoch) == (True, 5)
    added = to(1, VIEW, new)
    assert added.leader_and_isr is not None
    assert added.leader_and_isr.topic_states[0].partition_states[0].is_new
    kept = to(2, VIEW, new)
    assert kept.leader_and_isr is not None
    assert not kept.leader_and_isr.topic_states[0].partition_states[0].is_new


def test_a_deleted_topic_is_forgotten_by_all_and_deleted_by_its_replicas() -> None:
    """Also by a broker that was away meanwhile, of which nobody knows what it has."""
    new = TargetState(VIEW.image.with_changes(remove=frozenset({"t"})), {"t": TOPIC})
    for old in (VIEW, None):
        received = to(1, old, new)
        assert received.leader_and_isr is None
        assert received.update_metadata is not None
        (topic,) = received.update_metadata.topic_states
        assert {each.leader for each in topic.partition_states} == {-2}
        assert received.stop_replica is not None
        (stopped,) = received.stop_replica.topic_states
        assert [
            (each.partition_index, each.leader_epoch, each.delete_partition)
            for each in stopped.partition_states
        ] == [(1, -2, True)]
    assert to(1, new, TargetState(new.image)) == Orders()


def test_a_broker_that_stops_no_longer_follows() -> None:
    """Its followers are stopped, not deleted; what it leads moves by elections."""
    received = to(3, VIEW, replace(VIEW, stopping=frozenset({3})))
    assert received.stop_replica is not None
    (stop,) = received.stop_replica.topic_states[0].partition_states
    assert (stop.partition_index, stop.delete_partition) == (0, False)
    assert to(2, VIEW, replace(VIEW, stopping=frozenset({3}))) == Orders()


def test_changed_live_brokers_are_sent_to_all() -> None:
    """Without any partition having changed."""
    gone = {number: each for number, each in BROKERS.items() if number != 3}
    received = to(1, VIEW, TargetState(VIEW.image.with_changes(brokers=gone)))
    assert received.update_metadata is not None
    assert [each.id for each in received.update_metadata.live_brokers] == [1, 2]
    assert received.update_metadata.topic_states == []


def test_partitions_without_a_first_leader_are_not_sent() -> None:
    """There is nothing that a broker could make of them."""
    never = replace(STATE, leader=-1, leader_epoch=-1, isr=())
    assert (
        to(
            2,
            TargetState(EMPTY),
            TargetState(EMPTY.with_changes(put=(replace(TOPIC, partitions=(never,)),))),
        )
        == Orders()
    )


def test_a_queried_broker_is_sent_all_its_replicas() -> None:
    """In LeaderAndIsr, for the answers; nobody else is told, and nothing again."""
    asked = replace(VIEW, asked={2: 1})
    received = to(2, VIEW, asked)
    assert received.leader_and_isr is not None
    (topic,) = received.leader_and_isr.topic_states
    assert [(each.partition_index, each.is_new) for each in topic.partition_states] == [(0, False)]
    assert (received.update_metadata, received.stop_replica) == (None, None)
    assert to(3, VIEW, asked) == Orders()
    assert to(2, asked, asked) == Orders()
