"""A broker that is told of the cluster: which requests it obeys, and what it then knows."""

from dataclasses import replace
from uuid import UUID

import pytest

from barnabas_broker.cluster.control import (
    FencingEpochs,
    with_leadership,
    with_metadata,
)
from barnabas_broker.cluster.image import (
    OWN_SOFTWARE,
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.controller.target_state import Orders, Sender, TargetState, orders
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

ME = 2
BROKERS = {
    number: BrokerRegistration(
        number,
        (Endpoint("L", f"b{number}", 9090, "SASL_SSL"),),
        f"r{number}",
        100 + number,
        software,
    )
    for number, software in {1: OWN_SOFTWARE, 2: OWN_SOFTWARE, 3: None}.items()
}
STATE = PartitionState((2, 3), (2, 3), leader=2, leader_epoch=4, controller_epoch=6)
TOPIC = TopicImage("t", UUID(int=5), (STATE, replace(STATE, replicas=(1,), isr=(1,), leader=1)))
CLUSTER = MetadataImage(cluster_id="c", controller_id=1).with_changes(brokers=BROKERS, put=(TOPIC,))
NOTHING = MetadataImage(cluster_id="c")


def reported(
    new: MetadataImage, old: MetadataImage | None = None, **deleting: TopicImage
) -> Orders:
    """What the controller tells this broker."""
    before = None if old is None else TargetState(old)
    sender = Sender(controller_id=1, controller_epoch=7, listener="L")
    return orders(BROKERS[ME], before, TargetState(new, deleting), sender)


def obey(
    image: MetadataImage, given: Orders, configs: dict[str, dict[str, str]] | None = None
) -> MetadataImage:
    """The image after both requests."""
    if given.leader_and_isr is not None:
        image, answers = with_leadership(
            image, given.leader_and_isr, broker_id=ME, configs=configs or {}
        )
        assert set(answers.values()) <= {ErrorCode.NONE}
    if given.update_metadata is not None:
        image = with_metadata(image, given.update_metadata, broker_id=ME, configs=configs or {})
    return image


def test_update_metadata_transfers_topics_brokers_and_controller() -> None:
    """Topics with ids and states, brokers with racks and endpoints, and who the controller is."""
    image = obey(NOTHING, reported(CLUSTER), {"t": {"retention.ms": "5"}})
    assert image.topics == {"t": replace(TOPIC, config={"retention.ms": "5"})}
    assert image.topic_by_id(UUID(int=5)) is image.topics["t"]
    assert image.controller_id == 1
    assert [each.endpoints for each in image.brokers.values()] == [
        each.endpoints for each in BROKERS.values()
    ]
    assert [each.rack for each in image.brokers.values()] == ["r1", "r2", "r3"]
    ours = [each.software for each in image.brokers.values()]
    assert ours == [OWN_SOFTWARE, OWN_SOFTWARE, None]
    assert [each.epoch for each in image.brokers.values()] == [101, 102, 103]


def test_changes_arrive_and_what_has_not_changed_stays_the_same_object() -> None:
    """Settings of a topic are kept; a partition that changed is replaced."""
    image = obey(NOTHING, reported(CLUSTER), {"t": {"retention.ms": "5"}})
    again = obey(image, reported(CLUSTER))
    assert again.topics["t"] is image.topics["t"]
    led_by_3 = replace(STATE, leader=3, leader_epoch=5, isr=(3,), partition_epoch=1)
    changed = CLUSTER.with_changes(
        put=(replace(TOPIC, partitions=(led_by_3, TOPIC.partitions[1])),)
    )
    after = obey(image, reported(changed, CLUSTER))
    assert after.topics["t"].partitions[0] == led_by_3
    assert after.topics["t"].partitions[1] is image.topics["t"].partitions[1]
    assert after.topics["t"].config == {"retention.ms": "5"}


def test_a_deleted_topic_is_forgotten() -> None:
    """Also when it was never known."""
    image = obey(NOTHING, reported(CLUSTER))
    gone = reported(CLUSTER.with_changes(remove=frozenset({"t"})), CLUSTER, t=TOPIC)
    assert obey(image, gone).topics == {}
    assert obey(NOTHING, gone).topics == {}


def test_a_later_state_of_a_partition_here_is_not_overwritten() -> None:
    """LeaderAndIsr answers STALE_CONTROLLER_EPOCH; UpdateMetadata leaves the partition alone."""
    image = obey(NOTHING, reported(CLUSTER))
    older = CLUSTER.with_changes(
        put=(replace(TOPIC, partitions=(replace(STATE, leader=3, leader_epoch=3),)),)
    )
    given = reported(older)
    assert given.leader_and_isr is not None
    assert given.update_metadata is not None
    same, answers = with_leadership(image, given.leader_and_isr, broker_id=ME, configs={})
    assert answers == {TopicPartition("t", 0): ErrorCode.STALE_CONTROLLER_EPOCH}
    assert same.topics["t"] is image.topics["t"]
    after = with_metadata(image, given.update_metadata, broker_id=ME, configs={})
    assert after.topics["t"] is image.topics["t"]


@pytest.mark.parametrize("by_leader_and_isr", [True, False])
def test_a_newer_state_of_the_same_leader_epoch_is_taken(by_leader_and_isr: bool) -> None:
    """What the leader was not answered, or what the next controller has found; not an older one."""
    image = obey(NOTHING, reported(CLUSTER))
    newer = replace(STATE, isr=STATE.isr[:1], partition_epoch=STATE.partition_epoch + 1)
    given = reported(CLUSTER.with_changes(put=(replace(TOPIC, partitions=(newer,)),)))
    only = Orders(
        leader_and_isr=given.leader_and_isr if by_leader_and_isr else None,
        update_metadata=None if by_leader_and_isr else given.update_metadata,
    )
    after = obey(image, only)
    assert after.topics["t"].partitions[0] == newer
    assert obey(after, reported(CLUSTER)).topics["t"].partitions[0] == newer


def test_leadership_is_taken_only_of_the_topic_that_is_here_and_by_its_replicas() -> None:
    """Another topic of the same name, or a partition that lies elsewhere, is refused."""
    image = obey(NOTHING, reported(CLUSTER))
    given = reported(CLUSTER.with_changes(put=(replace(TOPIC, id=UUID(int=6)),)))
    assert given.leader_and_isr is not None
    _, answers = with_leadership(image, given.leader_and_isr, broker_id=ME, configs={})
    assert answers == {TopicPartition("t", 0): ErrorCode.INCONSISTENT_TOPIC_ID}
    mine = reported(CLUSTER).leader_and_isr
    assert mine is not None
    _, answers = with_leadership(NOTHING, mine, broker_id=9, configs={})
    assert answers == {TopicPartition("t", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_partition_may_arrive_before_those_with_lower_numbers() -> None:
    """LeaderAndIsr names only what lies here; the others are without a leader until they come."""
    first, second = replace(STATE, replicas=(1,), isr=(1,), leader=1), STATE
    cluster = CLUSTER.with_changes(put=(replace(TOPIC, partitions=(first, second)),))
    given = reported(cluster)
    half = obey(NOTHING, Orders(leader_and_isr=given.leader_and_isr))
    assert [each.leader for each in half.topics["t"].partitions] == [-1, 2]
    whole = obey(half, given)
    assert whole.topics["t"].partitions == (first, second)


def test_adding_and_removing_replicas_survive_update_metadata() -> None:
    """UpdateMetadata does not tell it."""
    moving = replace(STATE, replicas=(2, 3, 1), adding=(1,), removing=(3,))
    cluster = CLUSTER.with_changes(put=(replace(TOPIC, partitions=(moving,)),))
    assert obey(NOTHING, reported(cluster)).topics["t"].partitions == (moving,)


@pytest.mark.parametrize(
    ("controller_epoch", "broker_epoch", "expected"),
    [
        (7, 102, None),
        (8, 103, None),
        (7, -1, None),
        (6, 102, ErrorCode.STALE_CONTROLLER_EPOCH),
        (8, 101, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_an_earlier_controller_and_an_earlier_registration_are_refused(
    controller_epoch: int, broker_epoch: int, expected: ErrorCode | None
) -> None:
    """Later ones are obeyed: this broker may not know of its own registration yet."""
    epochs = FencingEpochs(controller_epoch=7, broker_epoch=102)
    assert epochs.refusal(controller_epoch, broker_epoch) is expected


def test_a_topic_is_visible_to_clients_once_all_its_partitions_are_known() -> None:
    """Not when this broker is told what it holds of it: the number of partitions is wrong then."""
    given = reported(CLUSTER)
    leads = given._replace(update_metadata=None)
    image = obey(NOTHING, leads)
    assert image.partition(TopicPartition("t", 0)) == STATE
    assert image.announced.topics == {}
    assert image.announced.topic_by_id(UUID(int=5)) is None
    image = obey(image, given._replace(leader_and_isr=None))
    assert image.announced is image
    grown = (*TOPIC.partitions, replace(STATE, leader=3), STATE)
    given = reported(CLUSTER.with_changes(put=(replace(TOPIC, partitions=grown),)), CLUSTER)
    image = obey(image, given._replace(update_metadata=None))
    assert len(image.topics["t"].partitions) == 4
    assert image.announced.topics == {"t": TOPIC}
    assert image.announced is image.announced
    image = obey(image, given._replace(leader_and_isr=None))
    assert image.announced.topics["t"].partitions == grown


@pytest.mark.parametrize("number", [-1, 1_000_000, 2**31 - 1])
def test_partitions_that_no_topic_has_take_no_room(number: int) -> None:
    """Places are kept for all below the highest: whoever can tell a broker must not fill them."""
    given = reported(CLUSTER)
    assert given.leader_and_isr is not None
    assert given.update_metadata is not None
    for request in (given.leader_and_isr, given.update_metadata):
        for topic in request.topic_states:
            topic.partition_states[0].partition_index = number
    image, answers = with_leadership(NOTHING, given.leader_and_isr, broker_id=ME, configs={})
    assert answers == {TopicPartition("t", number): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert image.topics == {}
    image = with_metadata(NOTHING, given.update_metadata, broker_id=ME, configs={})
    assert len(image.topics["t"].partitions) == 2
    assert image.partition(TopicPartition("t", 1)) == TOPIC.partitions[1]
