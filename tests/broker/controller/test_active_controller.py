"""Three brokers on one ensemble: who is elected, who leads, and that all know the same."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.commands import DeletionPendingError
from barnabas_broker.controller.configs import ConfigChange, ConfigResource
from barnabas_broker.controller.events import (
    AlterPartitionReceived,
    ApiPartitionReassignment,
    AutoPreferredReplicaLeaderElection,
    ControlledShutdown,
    ReplicaLeaderElection,
    TopicDeletionStopReplicaResponseReceived,
)
from barnabas_broker.controller.isr_changes import InSyncChange, IsrRequest
from barnabas_broker.controller.requests import ConfigRequest, ElectionType
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.store import Create, Delete, SetData
from barnabas_broker.zk.znodes import BrokerZnode, ControllerZnode, PartitionStateZnode
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster, Lost


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers in three racks; the first is the controller."""
    return Cluster(3)


def placed(*replicas: tuple[int, ...], name: str = "t") -> NewTopic:
    """A topic whose replicas are given."""
    return NewTopic(name=name, assignments=list(enumerate(replicas)))


def test_the_first_broker_is_elected_and_the_others_learn_of_everything(cluster: Cluster) -> None:
    """Brokers with racks, topics with racks in turn, and who the controller is."""
    cluster.create(NewTopic(name="t", num_partitions=6, replication_factor=3))
    image = cluster.image
    assert (image.controller_id, sorted(image.brokers)) == (1, [1, 2, 3])
    assert sorted(state.leader for state in image.topics["t"].partitions) == [1, 1, 2, 2, 3, 3]
    assert all(len(set(state.replicas)) == 3 for state in image.topics["t"].partitions)


def test_a_member_refuses_what_is_the_controllers(cluster: Cluster) -> None:
    """Clients look for the controller and ask again."""
    member = cluster.controllers[2]
    (refused,) = member.create_topics([NewTopic(name="t")], principal=ANONYMOUS, now_ms=NOW_MS)
    assert refused.outcome.error == ErrorCode.NOT_CONTROLLER
    (gone,) = member.delete_topics(["t"], principal=ANONYMOUS, now_ms=NOW_MS)
    assert gone.error == ErrorCode.NOT_CONTROLLER
    with pytest.raises(KafkaError, match="not the correct controller"):
        member.check_active()


def test_a_controller_that_dies_is_followed_by_another(cluster: Cluster) -> None:
    """In the next epoch; what it led is led by others, and it leaves the in-sync replicas."""
    cluster.create(placed((1, 2, 3), (2, 3, 1)), placed((1,), name="only"))
    cluster.kill(1)
    assert (cluster.active_controller.epoch, sorted(cluster.image.brokers)) == (2, [2, 3])
    assert cluster.leaders("t") == [(2, (2, 3)), (2, (2, 3))]
    assert cluster.leaders("only") == [(-1, (1,))]


def test_the_next_controllers_broker_learns_of_stopped_brokers(cluster: Cluster) -> None:
    """Each image follows on the one before, so that nobody of it waits for who is away."""
    images = [cluster.controllers[2].image]
    gone: set[int] = set()

    def listen(old: MetadataImage, new: MetadataImage) -> None:
        assert old is images[-1]
        images.append(new)
        gone.update(old.brokers.keys() - new.brokers.keys())

    cluster.controllers[2].add_listener(listen)
    cluster.kill(1)
    assert cluster.image.controller_id == 2
    assert gone == {1}


def test_a_broker_that_comes_back_leads_what_only_it_has(cluster: Cluster) -> None:
    """And follows the others again, which it is told of in full."""
    cluster.create(placed((3, 1)), placed((3,), name="only"))
    cluster.kill(3)
    assert [cluster.leaders("t"), cluster.leaders("only")] == [[(1, (1,))], [(-1, (3,))]]
    cluster.start(3)
    assert [cluster.leaders("t"), cluster.leaders("only")] == [[(1, (1,))], [(3, (3,))]]
    assert cluster.image.topics["only"].partitions[0].leader_epoch == 2


def test_a_broker_that_was_not_stopped_in_order_leaves_every_isr(cluster: Cluster) -> None:
    """Where others are in it, also if they are away; who says nothing stays as in Kafka."""
    cluster.create(placed((2, 3), (3, 2)), placed((2,), name="only"))
    cluster.kill(2, 3)
    assert cluster.leaders("t") == [(-1, (2, 3)), (-1, (3, 2))]
    cluster.start(2, unclean=True)
    assert cluster.leaders("t") == [(-1, (3,)), (-1, (3,))]
    assert cluster.leaders("only") == [(2, (2,))]
    cluster.start(3)
    assert cluster.leaders("t") == [(3, (3,)), (3, (3,))]


def test_a_broker_that_says_nothing_is_not_doubted(cluster: Cluster) -> None:
    """As in Kafka: it leads, whoever else was in sync."""
    cluster.create(placed((2, 3)))
    cluster.kill(2, 3)
    cluster.start(2)
    assert cluster.leaders("t") == [(2, (2,))]


def test_the_next_controller_honours_unclean_shutdowns(cluster: Cluster) -> None:
    """The one before may not have seen them come, and have named them all the same."""
    cluster.kill(2)
    cluster.start(2, unclean=True)
    cluster.create(placed((2, 3), (3, 2)), placed((2,), name="only"))
    cluster.kill(1)
    assert cluster.leaders("t") == [(3, (3,)), (3, (3,))]
    assert cluster.leaders("only") == [(2, (2,))]


def test_a_broker_that_lost_the_election_is_seen_as_restarted() -> None:
    """The controller of then is gone before it saw it: what this one led has a new epoch."""
    cluster = Cluster(2)
    cluster.create(placed((2,)))
    del cluster.controllers[1], cluster.controllers[2]
    hung = cluster.stores.pop(1)
    cluster.stores.pop(2).close()
    cluster.start(2)
    assert not cluster.controllers[2].is_active
    hung.close()
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2,))]
    assert cluster.image.topics["t"].partitions[0].leader_epoch == 1


def test_a_broker_that_only_registered_again_leads_on_in_its_epoch() -> None:
    """Its process is the one that led when the state was written."""
    cluster = Cluster(2)
    cluster.create(placed((2,)))
    cluster.ensemble.commit([Delete(BrokerZnode(2).path)])
    cluster.controllers[2].catch_up(None, now_ms=NOW_MS)
    del cluster.controllers[1]
    cluster.stores.pop(1).close()
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2,))]
    assert cluster.image.topics["t"].partitions[0].leader_epoch == 0


def test_a_broker_that_has_caught_up_is_not_doubted_by_the_next_controller(
    cluster: Cluster,
) -> None:
    """Its registration, the same one, says no more that it was not stopped in order."""
    cluster.kill(2)
    cluster.start(2, unclean=True)
    cluster.create(placed((3, 2)))
    epoch = cluster.image.brokers[2].epoch
    for _ in range(2):
        cluster.controllers[2].trust(now_ms=NOW_MS)
        cluster.settle()
    assert cluster.leaders("t") == [(3, (3, 2))]
    cluster.kill(1)
    assert cluster.leaders("t") == [(3, (3, 2))]
    assert cluster.image.brokers[2].epoch == epoch


def test_a_failed_unclean_report_is_repeated_at_the_next_full_read(cluster: Cluster) -> None:
    """As after a connection that was lost; and a new registration says it from the start."""
    path = BrokerZnode(2).path
    cluster.kill(2)
    cluster.start(2, unclean=True)
    reported = cluster.stores[1].get(path)[0]
    cluster.controllers[2].trust(now_ms=NOW_MS)
    said = cluster.stores[1].get(path)[0]
    assert reported is not None
    assert said is not None
    assert (b"unclean" in reported, b"unclean" in said) == (True, False)
    cluster.ensemble.commit([SetData(path, reported)])
    cluster.settle()
    assert cluster.stores[1].get(path)[0] == said
    cluster.ensemble.commit([Delete(path)])
    cluster.settle()
    assert cluster.stores[1].get(path)[0] == said


def test_an_unclean_leader_where_the_topic_allows_it(cluster: Cluster) -> None:
    """Only there; it has to recover."""
    unclean = [("unclean.leader.election.enable", "true")]
    for name, configs in (("dirty", unclean), ("clean", [])):
        cluster.create(NewTopic(name=name, assignments=[(0, (3, 1))], configs=configs))
    for name in ("dirty", "clean"):
        cluster.settle()
        shrunk = InSyncChange(name, 0, 0, 0, (3,))
        epoch = cluster.image.brokers[3].epoch
        request = IsrRequest(3, epoch, [shrunk], version=1)
        (answer,) = cluster.process(AlterPartitionReceived(request))
        assert answer.error is ErrorCode.NONE
        cluster.settle()
    cluster.kill(3)
    clean, dirty = (cluster.active_controller.image.topics[name] for name in ("clean", "dirty"))
    assert (clean.partitions[0].leader, clean.partitions[0].isr) == (-1, (3,))
    assert (dirty.partitions[0].leader, dirty.partitions[0].isr) == (1, (1,))
    assert dirty.partitions[0].recovering


def leave_without_leader(cluster: Cluster, *names: str) -> None:
    """Topics on brokers 3 and 2 of which only 3 is in sync, and gone."""
    for name in names:
        cluster.create(placed((3, 2), name=name))
        shrunk = InSyncChange(name, 0, 0, 0, (3,))
        request = IsrRequest(3, cluster.image.brokers[3].epoch, [shrunk], version=1)
        (answer,) = cluster.process(AlterPartitionReceived(request))
        assert answer.error is ErrorCode.NONE
        cluster.settle()
    cluster.kill(3)
    assert [cluster.leaders(name) for name in names] == [[(-1, (3,))]] * len(names)


def set_unclean(cluster: Cluster, by: int, resource: ConfigResource, name: str, to: str) -> None:
    """Change unclean.leader.election.enable through a broker."""
    change = ConfigChange("unclean.leader.election.enable", to)
    request = ConfigRequest(resource, name, [change])
    (answer,) = cluster.controllers[by].incremental_alter_configs(
        [request], principal=ANONYMOUS, now_ms=NOW_MS
    )
    assert answer.granted
    cluster.settle()


@pytest.mark.parametrize("by", [1, 2])
def test_a_topic_that_allows_an_unclean_leader_has_one_at_once(cluster: Cluster, by: int) -> None:
    """Whichever broker was told, and no other topic; the choice is not taken back."""
    leave_without_leader(cluster, "t", "other")
    set_unclean(cluster, by, ConfigResource.TOPIC, "t", "true")
    assert (cluster.leaders("t"), cluster.leaders("other")) == ([(2, (2,))], [(-1, (3,))])
    assert cluster.image.topics["t"].partitions[0].recovering
    set_unclean(cluster, by, ConfigResource.TOPIC, "t", "false")
    cluster.start(3)
    assert (cluster.leaders("t"), cluster.leaders("other")) == ([(2, (2,))], [(3, (3,))])


def test_brokers_that_allow_unclean_leaders_elect_them_at_once(cluster: Cluster) -> None:
    """All topics have one then, but for those that say otherwise."""
    leave_without_leader(cluster, "t", "strict")
    set_unclean(cluster, 2, ConfigResource.TOPIC, "strict", "false")
    set_unclean(cluster, 2, ConfigResource.BROKER, "", "true")
    assert (cluster.leaders("t"), cluster.leaders("strict")) == ([(2, (2,))], [(-1, (3,))])


def test_leaders_change_the_isr(cluster: Cluster) -> None:
    """It is written and told; a request made again is granted again, a late one is not."""
    cluster.create(placed((2, 1, 3)))
    epoch = cluster.image.brokers[2].epoch
    change = InSyncChange("t", 0, 0, 0, (2, 3))
    for _ in range(2):
        (answer,) = cluster.process(AlterPartitionReceived(IsrRequest(2, epoch, [change], 1)))
        assert answer.error is ErrorCode.NONE
        assert answer.state is not None
        assert (answer.state.isr, answer.state.partition_epoch) == ((2, 3), 1)
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2, 3))]
    late = InSyncChange("t", 0, 0, 0, (2,))
    (answer,) = cluster.process(AlterPartitionReceived(IsrRequest(2, epoch, [late], 1)))
    assert answer.error is ErrorCode.INVALID_UPDATE_VERSION
    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        cluster.process(AlterPartitionReceived(IsrRequest(2, epoch - 1, [], 1)))


def test_a_state_with_another_znode_version_is_not_overwritten(cluster: Cluster) -> None:
    """The change is refused, and the state is read again."""
    cluster.create(placed((2, 1)))
    path = PartitionStateZnode("t", 0).path
    data = cluster.stores[1].get(path)[0]
    cluster.ensemble.commit([SetData(path, data)])
    change = InSyncChange("t", 0, 0, 0, (2,))
    request = IsrRequest(2, cluster.image.brokers[2].epoch, [change], 1)
    (answer,) = cluster.process(AlterPartitionReceived(request))
    assert answer.error is ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.active_controller.image.topics["t"].partitions[0].partition_epoch == 1


def shrink(cluster: Cluster, *partitions: int) -> IsrRequest:
    """Broker 2, which leads them, wants to be alone in sync; it knows their first states."""
    changes = [InSyncChange("t", number, 0, 0, (2,)) for number in partitions]
    return IsrRequest(2, cluster.image.brokers[2].epoch, changes, version=1)


def is_granted(cluster: Cluster, request: IsrRequest) -> bool:
    """Whether the controller makes these changes, each once, and all brokers hear of it."""
    answers = cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    cluster.settle()
    known = [cluster.image.topics["t"].partitions[each.partition] for each in request.changes]
    assert [each.partition_epoch for each in known] == [1] * len(known)
    return [each.state for each in answers] == known


@pytest.mark.parametrize("lost", Lost)
def test_a_change_is_made_although_a_message_is_lost(cluster: Cluster, lost: Lost) -> None:
    """The state is read again: the change is there, or is made then; it is never made twice."""
    cluster.create(placed((2, 1), (2, 3)))
    cluster.stores[1].losses.append(lost)
    assert is_granted(cluster, shrink(cluster, 0, 1))
    assert cluster.leaders("t") == [(2, (2,)), (2, (2,))]


@pytest.mark.parametrize("lost", Lost)
def test_an_isr_change_with_an_unknown_outcome_is_retriable(cluster: Cluster, lost: Lost) -> None:
    """The error says that it is to be asked for again, and then it is granted.

    After INVALID_UPDATE_VERSION a leader of Apache's would wait for a newer state for good.
    """
    cluster.create(placed((2, 1)))
    cluster.stores[1].losses += [lost, Lost.REQUEST]
    request = shrink(cluster, 0)
    with pytest.raises(KafkaError) as failed:
        cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    assert failed.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert is_granted(cluster, request)


@pytest.mark.parametrize("lost", Lost)
def test_a_controller_that_was_followed_when_a_message_was_lost(
    cluster: Cluster, lost: Lost
) -> None:
    """It says that it is not the controller; the next one knows what the last one made."""
    cluster.create(placed((2, 1)))
    request = shrink(cluster, 0)
    former = cluster.controllers[1]
    cluster.stores[1].losses += [lost, Lost.REQUEST]
    with pytest.raises(KafkaError):
        former.alter_partitions(request, now_ms=NOW_MS)
    cluster.ensemble.commit([Delete(ControllerZnode.PATH)])
    cluster.stores[1].heard.clear()
    cluster.controllers[3].catch_up({ControllerZnode.PATH}, now_ms=NOW_MS)
    with pytest.raises(KafkaError) as refused:
        former.alter_partitions(request, now_ms=NOW_MS)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    former.catch_up(None, now_ms=NOW_MS)
    cluster.settle()
    assert cluster.image.controller_id == 3
    assert is_granted(cluster, request)


def test_a_change_is_not_refused_by_what_a_member_that_lags_has(cluster: Cluster) -> None:
    """Refused, it would be forgotten by its leader, who would not wait for broker 3 any more."""
    cluster.create(placed((2, 3)))
    store, path = cluster.stores[1], PartitionStateZnode("t", 0).path
    assert is_granted(cluster, shrink(cluster, 0))
    before = store.get(path)
    grow = InSyncChange("t", 0, 0, 1, (2, 3))
    request = IsrRequest(2, cluster.image.brokers[2].epoch, [grow], version=1)
    store.losses += [Lost.ANSWER, Lost.REQUEST]
    with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
        cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    store.behind[path] = before
    cluster.active_controller.active.context.stopping = frozenset({3})
    (answer,) = cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    assert answer.state is not None
    assert (answer.state.isr, answer.state.partition_epoch) == ((2, 3), 2)


def test_one_conflicting_write_does_not_fail_the_others(cluster: Cluster) -> None:
    """One transaction writes them all: what the store refuses is one of them."""
    cluster.create(placed((2, 1), (2, 3)))
    path = PartitionStateZnode("t", 0).path
    cluster.ensemble.commit([SetData(path, cluster.stores[1].get(path)[0])])
    answers = cluster.active_controller.alter_partitions(shrink(cluster, 0, 1), now_ms=NOW_MS)
    assert [each.error for each in answers] == [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NONE,
    ]
    cluster.settle()
    assert cluster.leaders("t") == [(2, (2, 1)), (2, (2,))]


def test_a_topic_is_deleted_everywhere_before_it_is_forgotten(cluster: Cluster) -> None:
    """A broker that is away is waited for; until then there can be no other of that name."""
    cluster.create(placed((2,), (3,)), placed((1,), name="other"))
    cluster.kill(3)
    active_controller = cluster.active_controller
    (answer,) = active_controller.delete_topics(["t"], principal=ANONYMOUS, now_ms=NOW_MS)
    assert answer.granted
    cluster.settle()
    assert list(cluster.image.topics) == ["other"]
    assert cluster.stops[2] == [(TopicPartition("t", 0), True)]
    assert cluster.stores[1].exists("/admin/delete_topics/t") is not None
    (refused,) = active_controller.create_topics([placed((2,))], principal=ANONYMOUS, now_ms=NOW_MS)
    assert refused.outcome.error == ErrorCode.TOPIC_ALREADY_EXISTS
    cluster.start(3)
    assert cluster.stops[3] == [(TopicPartition("t", 1), True)]
    assert cluster.stores[1].exists("/admin/delete_topics/t") is None
    assert cluster.stores[1].exists("/brokers/topics/t") is None
    cluster.create(placed((3,)))
    assert len(cluster.stops[3]) == 1


def test_a_log_of_the_controller_that_is_deleted_late_is_waited_for(cluster: Cluster) -> None:
    """Whatever is published meanwhile: after a crash the log would be there, and its topic not."""
    cluster.create(placed((1, 2)), placed((1,), name="other"))
    controller = cluster.active_controller
    pending: dict[str, KafkaError] = {"t": DeletionPendingError(TopicPartition("t", 0))}
    late = [pending]
    controller.add_listener(lambda _old, _new: late.pop() if late else {})
    controller.delete_topics(["t"], principal=ANONYMOUS, now_ms=NOW_MS)
    cluster.settle()
    cluster.create(placed((2,), name="another"))
    controller.catch_up(None, now_ms=NOW_MS)
    mark = "/admin/delete_topics/t"
    assert cluster.stores[1].exists(mark) is not None
    deleting = controller.active.context.deleting
    cluster.process(TopicDeletionStopReplicaResponseReceived(1, deleting, {"t"}))
    before = {"t": replace(deleting["t"], id=UUID(int=5))}
    cluster.process(TopicDeletionStopReplicaResponseReceived(1, before, ()))
    controller.catch_up(None, now_ms=NOW_MS)
    cluster.create(placed((2,), name="one-more"))
    assert cluster.stores[1].exists(mark) is not None
    cluster.process(TopicDeletionStopReplicaResponseReceived(1, deleting, ()))
    assert cluster.stores[1].exists(mark) is None
    assert cluster.stores[1].exists("/brokers/topics/t") is None
    assert controller.active.context.undeleted == set()


def test_a_deletion_goes_on_under_the_next_controller(cluster: Cluster) -> None:
    """The mark is what it goes by."""
    cluster.create(placed((3,), (2,)))
    cluster.kill(3)
    cluster.active_controller.delete_topics(["t"], principal=ANONYMOUS, now_ms=NOW_MS)
    cluster.settle()
    cluster.kill(1)
    assert cluster.image.controller_id == 2
    assert cluster.image.topics == {}
    cluster.start(3)
    assert cluster.stores[2].exists("/brokers/topics/t") is None


def test_a_broker_that_is_about_to_stop_hands_over(cluster: Cluster) -> None:
    """It is told to follow no more, is in sync nowhere, and keeps what nobody else has."""
    cluster.create(placed((2, 3), (3, 2)), placed((2,), name="only"))
    epoch = cluster.image.brokers[2].epoch
    left = cluster.process(ControlledShutdown(2, epoch))
    assert left == []
    cluster.settle()
    assert cluster.leaders("t") == [(3, (3,)), (3, (3,))]
    assert cluster.leaders("only") == [(2, (2,))]
    assert (TopicPartition("t", 1), False) in cluster.stops[2]
    back = InSyncChange("t", 1, 1, 1, (3, 2))
    request = IsrRequest(3, cluster.image.brokers[3].epoch, [back], 2)
    (answer,) = cluster.process(AlterPartitionReceived(request))
    assert answer.error is ErrorCode.INELIGIBLE_REPLICA
    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        cluster.process(ControlledShutdown(2, epoch - 1))
    with pytest.raises(KafkaError, match="does not exist"):
        cluster.process(ControlledShutdown(9, -1))


def elected_again(cluster: Cluster) -> tuple[int, ErrorCode]:
    """How many leaders a balance moves to brokers that prefer to lead; why t-0 is not moved."""
    moved = cluster.process(AutoPreferredReplicaLeaderElection(0))
    tp = TopicPartition("t", 0)
    refused = cluster.process(ReplicaLeaderElection(ElectionType.PREFERRED, [tp]))[tp]
    assert refused is not None
    return moved, refused.code


def test_a_broker_that_is_about_to_stop_is_not_elected_again(cluster: Cluster) -> None:
    """Not by the balance, a tool or a move, nor by a controller that does not know of its stop."""
    cluster.create(placed((2, 3)), placed((3,), name="only"))
    assert cluster.process(ControlledShutdown(2, cluster.image.brokers[2].epoch)) == []
    assert elected_again(cluster) == (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    here, there = TopicPartition("t", 0), TopicPartition("only", 0)
    moves = cluster.process(ApiPartitionReassignment({here: (2,), there: (2,)}))
    assert moves[here] is None
    assert moves[there].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cluster.settle()
    assert cluster.leaders("t") == [(3, (3,))]
    cluster.kill(1)
    assert {2, 3} == set(cluster.image.brokers)
    assert elected_again(cluster) == (0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    assert cluster.leaders("t") == [(3, (3,))]


def test_the_last_in_sync_replica_cannot_hand_over(cluster: Cluster) -> None:
    """The broker is told what would be without a leader, and may ask again."""
    cluster.create(placed((2, 3)))
    cluster.kill(3)
    epoch = cluster.image.brokers[2].epoch
    left = cluster.process(ControlledShutdown(2, epoch))
    assert left == [TopicPartition("t", 0)]


def test_a_topic_that_an_old_tool_made(cluster: Cluster) -> None:
    """It is led by those of its replicas that are alive."""
    data = b'{"version":1,"partitions":{"0":[3,7],"1":[7]}}'
    cluster.ensemble.commit([Create("/brokers/topics/t", data)])
    cluster.settle()
    first, second = cluster.active_controller.image.topics["t"].partitions
    assert (first.leader, first.isr, second.leader) == (3, (3,), -1)
    assert cluster.controllers[2].image.topics["t"].partitions == (first,)


def test_an_office_that_is_taken_away_is_contested_again(cluster: Cluster) -> None:
    """Whoever wins, there is one controller, in the next epoch, and leaders stay."""
    cluster.create(placed((3, 2, 1)))
    cluster.ensemble.commit([Delete("/controller")])
    cluster.settle()
    assert cluster.active_controller.epoch == 2
    assert cluster.leaders("t") == [(3, (3, 2, 1))]


def test_the_next_controller_watches_topics_and_brokers(cluster: Cluster) -> None:
    """Topics that old tools make, and brokers that come and go, after it was elected."""
    cluster.kill(1)
    cluster.ensemble.commit(
        [Create("/brokers/topics/t", b'{"version":1,"partitions":{"0":[3,2]}}')]
    )
    cluster.settle()
    assert cluster.leaders("t") == [(3, (3, 2))]
    cluster.kill(3)
    assert cluster.leaders("t") == [(2, (2,))]
    cluster.ensemble.commit([Create("/admin/delete_topics/t")])
    cluster.settle()
    assert cluster.image.topics == {}
