"""The controller's core: what it does upon each event, without I/O, a clock or another thread.

Kafka's `KafkaController.process`, one event after the other. `handle` takes an event and returns
the next command; its performer hands the result back as an event. A transition ends with
Answer or by an error, and only then does the next one begin, so that no decision is taken on half
of another one.

No transition asks what time it is: what is timed is a timer of the thread (`server.control`), and
comes as an event.
"""

from collections.abc import Callable
from typing import Any, Final

from barnabas_broker.controller import events
from barnabas_broker.controller.commands import Answer, Command, Transition
from barnabas_broker.controller.context import ControllerContext
from barnabas_broker.controller.events import Event, Failed, Performed
from barnabas_broker.controller.transitions.alter_partition import alter_partitions
from barnabas_broker.controller.transitions.brokers import (
    broker_change,
    ends_answered,
    log_dir_event,
    storage_answered,
    unclean_elections,
)
from barnabas_broker.controller.transitions.controlled_shutdown import controlled_shutdown
from barnabas_broker.controller.transitions.failover import begin
from barnabas_broker.controller.transitions.isr_notifications import isr_changes_written
from barnabas_broker.controller.transitions.leader_election import (
    balance,
    elect,
    elections_asked_for,
)
from barnabas_broker.controller.transitions.partition_reassignment import (
    complete_moves,
    moves_asked_for,
    reassign,
)
from barnabas_broker.controller.transitions.producer_ids import allocate
from barnabas_broker.controller.transitions.settling import settle_refused
from barnabas_broker.controller.transitions.topic_change import topics_changed
from barnabas_broker.controller.transitions.topic_creation import create, grow
from barnabas_broker.controller.transitions.topic_deletion import complete_all, confirm, delete
from barnabas_broker.invariants import violated

Begin = Callable[[ControllerContext, Any], Transition[Any]]

TRANSITIONS: Final[dict[type[Event], Begin]] = {
    events.ControllerChange: lambda its, it: begin(its, first_epoch=it.first_epoch),
    events.AlterPartitionReceived: lambda its, it: alter_partitions(its, it.request),
    events.ControlledShutdown: lambda its, it: controlled_shutdown(its, it.broker, it.broker_epoch),
    events.TopicCreation: lambda its, it: create(
        its, it.new, validate_only=it.validate_only, admit=it.admit
    ),
    events.PartitionCreation: lambda its, it: grow(
        its, it.growths, validate_only=it.validate_only, admit=it.admit
    ),
    events.AllocateProducerIds: lambda its, it: allocate(
        its, it.broker, it.broker_epoch, above=it.above
    ),
    events.TopicDeletion: lambda its, it: delete(its, it.names),
    events.ReplicaLeaderElection: lambda its, it: elect(its, it.kind, it.partitions),
    events.ApiPartitionReassignment: lambda its, it: reassign(
        its, it.wanted, factor_may_change=it.factor_may_change
    ),
    events.AutoPreferredReplicaLeaderElection: lambda its, it: balance(
        its, it.imbalance_percentage
    ),
    events.ElectionsRetried: lambda its, _: settle_refused(its),
    events.BrokerChange: lambda its, _: broker_change(its),
    events.IsrChangeNotification: lambda its, it: isr_changes_written(its, anything=it.anything),
    events.LogDirEventNotification: lambda its, _: log_dir_event(its),
    events.TopicChange: lambda its, it: topics_changed(its, it.names),
    events.UncleanLeaderElectionEnable: lambda its, _: unclean_elections(its),
    events.PartitionReassignmentIsrChange: lambda its, it: complete_moves(its, it.partitions),
    events.ZkReplicaLeaderElection: lambda its, _: elections_asked_for(its),
    events.ZkPartitionReassignment: lambda its, _: moves_asked_for(its),
    events.LeaderAndIsrResponseReceived: lambda its, it: storage_answered(
        its, it.broker, it.answered
    ),
    events.LogEndsReceived: lambda its, it: ends_answered(
        its, it.broker, it.broker_epoch, it.answered
    ),
    events.TopicDeletionStopReplicaResponseReceived: lambda its, it: confirm(
        its, it.broker, it.deleting, it.refused
    ),
    events.TopicDeletionRetried: lambda its, _: complete_all(its),
}
"""What each event begins; results of commands go on with what is under way."""


class ControllerCore:
    """The context, and the transition that is under way."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self._running: Transition[Any] | None = None

    def handle(self, event: Event) -> Command | Answer:
        """What is to be done next. An event that the table does not list fails.

        Raises the error that ends a transition, for its requester.
        """
        if isinstance(event, Performed):
            return self._go_on(lambda running: running.send(event.result))
        if isinstance(event, Failed):
            return self._go_on(lambda running: running.throw(event.error))
        begin = TRANSITIONS[type(event)]
        assert self._running is None, violated("one transition ends before the next one begins")
        self._running = begin(self.context, event)
        return self._go_on(next)

    def abandon(self) -> None:
        """Commands are performed no more: what is in flight has not happened."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _go_on(self, step: Callable[[Transition[Any]], Command]) -> Command | Answer:
        running = self._running
        assert running is not None, violated("results are those of a transition under way")
        try:
            return step(running)
        except StopIteration as ended:
            self._running = None
            return Answer(ended.value)
        except BaseException:
            self._running = None
            raise
