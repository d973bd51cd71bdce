"""What the controller does upon each event, as transcripts; and what its core refuses to do.

`transcripts/` holds what is commanded and answered in each scenario. After a change that is meant:

    python -m tests.broker.controller.test_core
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller import events
from barnabas_broker.controller.careful_election import LogEnd
from barnabas_broker.controller.commands import Answer, ReadBrokers
from barnabas_broker.controller.configs import ConfigChange, ConfigResource
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.core import TRANSITIONS, ControllerCore
from barnabas_broker.controller.requests import ConfigRequest, ElectionType, Growth
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.store import CoordinationError, Create, Delete, SetData
from barnabas_broker.zk.znodes import (
    ControllerEpochZnode,
    PartitionStateZnode,
    PreferredElectionZnode,
    ReassignPartitionsZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Lost
from tests.broker.controller.scenarios import EVENTS, Scenario

TRANSCRIPTS = Path(__file__).parent / "transcripts"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def topic(*replicas: tuple[int, ...], name: str = "t", **config: str) -> NewTopic:
    """A topic whose replicas are given."""
    named = [(key.replace("_", "."), value) for key, value in config.items()]
    return NewTopic(name=name, assignments=list(enumerate(replicas)), configs=named)


def a_follower_falls_behind() -> Scenario:
    """And catches up again."""
    scenario = Scenario("A follower falls behind, and catches up", topic((2, 1, 3)))
    scenario.alter(2, T0, 2, 3)
    scenario.alter(2, T0, 2, 3, 1)
    scenario.outcome("t")
    return scenario


def a_leader_knows_less() -> Scenario:
    """Somebody else has written the state: the store refuses it, and it is judged again."""
    scenario = Scenario("The state has been written by somebody else", topic((2, 1, 3)))
    znode = PartitionStateZnode("t", 0)
    data = scenario.cluster.stores[1].get(znode.path)[0]
    scenario.cluster.ensemble.commit([SetData(znode.path, data)])
    scenario.alter(2, T0, 2, 3)
    scenario.outcome("t")
    return scenario


def an_answer_is_lost() -> Scenario:
    """What was written is granted all the same."""
    scenario = Scenario("The answer of ZooKeeper is lost", topic((2, 1, 3)))
    scenario.cluster.stores[1].losses.append(Lost.ANSWER)
    scenario.alter(2, T0, 2, 3)
    scenario.outcome("t")
    return scenario


def another_controller_has_followed() -> Scenario:
    """Nothing is written any more."""
    scenario = Scenario("Another controller has followed", topic((2, 1, 3)))
    scenario.cluster.ensemble.commit(
        [SetData(ControllerEpochZnode.PATH, ControllerEpochZnode.encode(2))]
    )
    scenario.alter(2, T0, 2, 3)
    return scenario


def a_broker_dies() -> Scenario:
    """Leaders are elected from the ISR; what only it had waits."""
    scenario = Scenario("A broker dies", topic((2, 1, 3), (1, 2, 3)), topic((2,), name="only"))
    scenario.cluster.kill(2)
    for name in ("t", "only"):
        scenario.outcome(name)
    return scenario


def the_store_refuses_an_election() -> Scenario:
    """It is held again by what the store has, and once more when a timer says so."""
    scenario = Scenario(
        "A state is gone when its leader dies", topic((2, 1, 3)), topic((2, 3), name="u")
    )
    znode = PartitionStateZnode("t", 0)
    data = scenario.cluster.stores[1].get(znode.path)[0]
    scenario.cluster.ensemble.commit([Delete(znode.path)])
    scenario.cluster.kill(2)
    scenario.tell("The znode is restored.")
    scenario.cluster.ensemble.commit([Create(znode.path, data)])
    scenario.process(events.ElectionsRetried())
    scenario.outcome("t")
    return scenario


def a_careful_election() -> Scenario:
    """All replicas say how far their logs go, and the longest leads."""
    scenario = Scenario("The only replica in sync was not stopped in order", topic((3, 2, 1)))
    scenario.cluster.kill(2)
    scenario.alter(3, T0, 3)
    scenario.cluster.kill(3)
    scenario.tell("Broker 3 is back, and says that its log may be short; so is broker 2.")
    scenario.cluster.start(3, unclean=True)
    scenario.cluster.start(2)
    for broker, end in ((3, 7), (2, 9), (1, 8)):
        scenario.cluster.ends[broker, T0] = LogEnd(1, end)
        scenario.cluster.settle()
    scenario.outcome("t")
    return scenario


def a_controlled_shutdown() -> Scenario:
    """What it leads is handed over, but what only it can lead."""
    scenario = Scenario("A broker is about to stop", topic((2, 1), (1, 2)), topic((2, 3), name="u"))
    scenario.alter(2, TopicPartition("u", 0), 2)
    epoch = scenario.cluster.image.brokers[2].epoch
    scenario.process(events.ControlledShutdown(2, epoch))
    scenario.process(events.ControlledShutdown(2, epoch - 1))
    for name in ("t", "u"):
        scenario.outcome(name)
    return scenario


def a_controller_dies() -> Scenario:
    """The next one reads everything, elects, finishes what was begun."""
    scenario = Scenario("The controller dies", topic((1, 2), (2, 3)), topic((2, 3), name="doomed"))
    scenario.cluster.ensemble.commit([Create("/admin/delete_topics/doomed")])
    scenario.cluster.kill(1)
    scenario.outcome("t")
    return scenario


def a_topic_is_deleted() -> Scenario:
    """Its znodes stay until every broker has confirmed."""
    scenario = Scenario("A topic is deleted", topic((1, 2)), topic((3,), name="other"))
    scenario.process(events.TopicDeletion(["t"]))
    return scenario


def topics_are_created() -> Scenario:
    """Each in a transaction of its own; one that somebody else has written is left alone."""
    scenario = Scenario("Topics are created", brokers=2)
    scenario.cluster.ensemble.commit([Create("/config/topics/left", b'{"version":1,"config":{}}')])
    stray = b'{"version":1,"partitions":{"0":[1]}}'
    scenario.cluster.ensemble.commit([Create("/brokers/topics/stray", stray)])
    new = [topic((1, 2), (2, 1), name="left"), topic((2,), name="stray"), topic((9,), name="no")]
    scenario.process(events.TopicCreation(new))
    scenario.outcome("left")
    return scenario


def partitions_are_added() -> Scenario:
    """Those that there are keep their states; brokers about to stop are not in sync."""
    scenario = Scenario("Partitions are added", topic((1, 2)), topic((2,), name="whole"))
    scenario.process(events.ControlledShutdown(2, scenario.cluster.image.brokers[2].epoch))
    growths = [Growth("t", 2, [(2, 1)]), Growth("whole", 1), Growth("no", 2)]
    scenario.process(events.PartitionCreation(growths))
    scenario.outcome("t")
    return scenario


def producer_ids_are_allocated() -> Scenario:
    """By the version of the block before, which a broker that claims for itself may have set."""
    scenario = Scenario("Producer ids are allocated")
    scenario.process(events.AllocateProducerIds(2, scenario.cluster.image.brokers[2].epoch, -1))
    scenario.tell("Broker 3 claims a block by itself.")
    scenario.cluster.controllers[3].active.process(
        events.AllocateProducerIds(3, None, 4711), now_ms=NOW_MS
    )
    scenario.process(events.AllocateProducerIds(2, scenario.cluster.image.brokers[2].epoch - 1, -1))
    return scenario


def a_topic_of_a_broker_alone_is_deleted() -> Scenario:
    """Nobody else is waited for, wherever its replicas are; its own failure is."""
    scenario = Scenario("A broker with a store of its own deletes topics", topic((1, 2)), brokers=2)
    scenario.cluster.kill(2)
    scenario.cluster.active_controller.active.context.alone = True
    scenario.process(events.TopicDeletion(["t"]))
    return scenario


def an_old_tool_creates_a_topic() -> Scenario:
    """And adds a partition to another: both get what they lack."""
    scenario = Scenario("A tool up to 2.8 creates and grows topics", topic((1, 2)))
    created = TopicZnode("old").encode(TopicAssignment(None, {0: ReplicaAssignment((2, 3))}))
    scenario.cluster.ensemble.commit([Create("/brokers/topics/old", created)])
    scenario.cluster.settle()
    znode = TopicZnode("t")
    known = znode.decode(scenario.cluster.stores[1].get(znode.path)[0])
    grown = TopicAssignment(known.id, {**known.partitions, 1: ReplicaAssignment((9, 2))})
    scenario.cluster.ensemble.commit([SetData(znode.path, znode.encode(grown))])
    scenario.cluster.settle()
    for name in ("old", "t"):
        scenario.outcome(name)
    return scenario


def a_log_directory_fails() -> Scenario:
    """Its replicas leave the ISR, and are led by others; both again when it works."""
    scenario = Scenario("A log directory fails, and works again", topic((2, 3, 1)))
    scenario.cluster.disk(2, T0, works=False)
    scenario.tell("The directory works again.")
    scenario.cluster.disk(2, T0, works=True)
    scenario.outcome("t")
    return scenario


def a_partition_moves() -> Scenario:
    """New replicas catch up, old ones go; a second move is called off."""
    scenario = Scenario("A partition is moved", topic((1, 2)), brokers=4)
    scenario.process(events.ApiPartitionReassignment({T0: [3, 4]}))
    scenario.alter(1, T0, 1, 2, 3, 4)
    scenario.tell("It is to go back, and then not.")
    scenario.process(events.ApiPartitionReassignment({T0: [1]}))
    scenario.process(events.ApiPartitionReassignment({T0: None}))
    scenario.outcome("t")
    return scenario


def elections_asked_for() -> Scenario:
    """The preferred leader, any that is left, and none."""
    scenario = Scenario("Elections are asked for", topic((2, 1), (3, 1)))
    scenario.cluster.kill(2)
    scenario.cluster.start(2)
    scenario.attach()
    scenario.alter(1, T0, 1, 2)
    preferred = ElectionType.PREFERRED
    scenario.process(events.ReplicaLeaderElection(preferred, [T0, T1, TopicPartition("no", 0)]))
    scenario.outcome("t")
    return scenario


def leadership_is_balanced() -> Scenario:
    """A broker that leads too little gets its partitions back."""
    scenario = Scenario("Leadership is balanced", topic((2, 1), (2, 3)))
    scenario.cluster.kill(2)
    scenario.cluster.start(2)
    scenario.alter(1, T0, 1, 2)
    scenario.alter(3, T1, 3, 2)
    scenario.process(events.AutoPreferredReplicaLeaderElection(10))
    scenario.outcome("t")
    return scenario


def unclean_elections_are_allowed() -> Scenario:
    """What nobody leads is led as soon as the topic's settings allow it."""
    scenario = Scenario("Unclean elections become allowed", topic((2, 3)))
    scenario.alter(2, T0, 2)
    scenario.cluster.kill(2)
    change = ConfigChange("unclean.leader.election.enable", value="true")
    request = ConfigRequest(ConfigResource.TOPIC, "t", [change])
    scenario.tell("The topic's settings are changed.")
    scenario.cluster.active_controller.incremental_alter_configs(
        [request], principal=ANONYMOUS, now_ms=NOW_MS
    )
    scenario.cluster.settle()
    scenario.outcome("t")
    return scenario


def a_leader_writes_itself() -> Scenario:
    """As brokers before 2.7 do."""
    scenario = Scenario("A leader writes the ISR itself", topic((2, 1, 3)))
    leader = scenario.cluster.controllers[2]
    state = leader.image.topics["t"].partitions[0]
    wanted = type(state)(**{name: getattr(state, name) for name in state.__slots__} | {"isr": (2,)})
    leader.write_in_sync(T0, wanted, now_ms=NOW_MS)
    leader.notify_controller([T0], now_ms=NOW_MS)
    scenario.cluster.settle()
    scenario.outcome("t")
    return scenario


def old_tools_ask() -> Scenario:
    """For moves and elections, in znodes that go when it is done."""
    scenario = Scenario("Tools up to 2.8 ask in znodes", topic((1, 2), (2, 1)))
    wanted = ReassignPartitionsZnode.encode({T0: (3,)})
    scenario.cluster.ensemble.commit([Create(ReassignPartitionsZnode.PATH, wanted)])
    scenario.cluster.settle()
    scenario.alter(1, T0, 1, 2, 3)
    asked = b'{"version":1,"partitions":[{"topic":"t","partition":1}]}'
    scenario.cluster.ensemble.commit([Create(PreferredElectionZnode.PATH, asked)])
    scenario.cluster.settle()
    scenario.outcome("t")
    return scenario


PLAYS: dict[str, Callable[[], Scenario]] = {
    scenario.__name__: scenario
    for scenario in (
        a_broker_dies,
        a_careful_election,
        a_controlled_shutdown,
        a_controller_dies,
        a_follower_falls_behind,
        a_leader_knows_less,
        a_leader_writes_itself,
        a_log_directory_fails,
        a_partition_moves,
        a_topic_is_deleted,
        a_topic_of_a_broker_alone_is_deleted,
        an_answer_is_lost,
        an_old_tool_creates_a_topic,
        another_controller_has_followed,
        elections_asked_for,
        leadership_is_balanced,
        old_tools_ask,
        partitions_are_added,
        producer_ids_are_allocated,
        the_store_refuses_an_election,
        topics_are_created,
        unclean_elections_are_allowed,
    )
}


@pytest.mark.parametrize("name", PLAYS)
def test_it_goes_as_written(name: str) -> None:
    """Word for word; the file is what people read who want to know what happens."""
    written = (TRANSCRIPTS / f"{name}.txt").read_text("utf-8")
    assert PLAYS[name]().transcript == written


def test_every_transcript_has_its_play() -> None:
    """Nothing is left over."""
    assert {each.stem for each in TRANSCRIPTS.glob("*.txt")} == set(PLAYS)


def test_every_event_has_its_transition_and_its_play() -> None:
    """Of what can happen nothing is without a row, and no row without a transcript."""
    results = {events.Performed, events.Failed}
    assert set(TRANSITIONS) == set(EVENTS) - results
    reported = "".join(each.read_text("utf-8") for each in TRANSCRIPTS.glob("*.txt"))
    silent = {kind.__name__ for kind in TRANSITIONS if kind.__name__ not in reported}
    # It does nothing unless znodes could not be removed, which the deletion itself shows.
    assert silent == {"TopicDeletionRetried"}


def core() -> ControllerCore:
    """The core of a controller of nothing."""
    settings = cast(Any, SimpleNamespace(elects_carefully=True, deletion_enabled=True))
    image = MetadataImage(cluster_id="c")
    return ControllerCore(
        ControllerContext(broker_id=1, settings=settings, random=Random(1), image=image)
    )


def test_an_event_that_is_not_listed_fails() -> None:
    """It is no news that could be ignored."""
    with pytest.raises(KeyError):
        core().handle(cast(Any, None))


def test_one_transition_ends_before_the_next_begins(violations: list[str]) -> None:
    """Half of one would be decided by the other; and results belong to one that is under way."""
    started = core()
    with pytest.raises(AssertionError, match="under way"):
        started.handle(events.Performed(None))
    assert isinstance(started.handle(events.BrokerChange()), ReadBrokers)
    with pytest.raises(AssertionError, match="before the next one begins"):
        started.handle(events.BrokerChange())
    assert started.handle(events.Performed({})) == Answer(None)
    assert len(violations) == 2
    violations.clear()


def test_a_command_that_fails_ends_its_transition_by_the_error() -> None:
    """Unless the transition knows better; another one may begin then."""
    started = core()
    started.handle(events.BrokerChange())
    away = CoordinationError("away")
    with pytest.raises(CoordinationError, match="away"):
        started.handle(events.Failed(away))
    started.handle(events.BrokerChange())
    started.abandon()
    started.handle(events.BrokerChange())


if __name__ == "__main__":
    TRANSCRIPTS.mkdir(exist_ok=True)
    for title, written_by in PLAYS.items():
        (TRANSCRIPTS / f"{title}.txt").write_text(written_by().transcript, "utf-8")
