"""Scenarios of the controller's transitions: each event, the commands that follow, the answer.

A scenario has a cluster on a real znode tree (`ensemble.Cluster`). What goes into the core of each
controller and comes out of it is its transcript: `>` is a command, `<` its result, `=` the answer.
An event upon which nothing is done is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from barnabas_broker.cluster.image import MetadataImage, PartitionState
from barnabas_broker.controller import commands, events
from barnabas_broker.controller.commands import Answer, Command
from barnabas_broker.controller.core import ControllerCore
from barnabas_broker.controller.isr_changes import InSyncChange, IsrAnswer, IsrRequest
from barnabas_broker.controller.requests import CreatedTopic, Outcome
from barnabas_broker.controller.stored import StoredProducerIdBlock, StoredState, StoredTopics
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.operations import Create, Delete, Operation, SetData
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import ZooKeeperError
from tests.broker.controller.ensemble import Cluster

EVENTS = get_args(events.Event)
"""All that there are."""


class Scenario:
    """One scenario and its transcript."""

    def __init__(self, title: str, *topics: NewTopic, brokers: int = 3, **settings: str) -> None:
        """Topics and brokers exist from the start; broker 1 is the controller."""
        self.lines = [title, "=" * len(title), ""]
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.cluster = Cluster(brokers, named)
        self.cluster.create(*topics)
        for topic in topics:
            placed = "; ".join(f"{it}: {_ids(replicas)}" for it, replicas in topic.assignments)
            self.tell(f"Topic {topic.name} is on brokers {placed}.")
        self.attach()

    @property
    def transcript(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"

    def attach(self) -> None:
        """Write down what goes on in controllers that are new."""
        for broker, controller in self.cluster.controllers.items():
            core = controller.active._core
            if not isinstance(core, _Listened):
                controller.active._core = _Listened(core, broker, self)

    def tell(self, text: str) -> None:
        """Add a sentence to the transcript."""
        self.lines += ["", text] if self.lines[-1] else [text]

    def process(self, event: events.Event) -> None:
        """Have an event handled, and everybody hear of it."""
        try:
            self.cluster.process(event)
        except KafkaError:
            pass  # It is in the transcript.
        self.cluster.settle()

    def alter(self, broker: int, tp: TopicPartition, *isr: int) -> None:
        """The leader asks for an ISR, by what it knows, which is what the controller knows."""
        controller = self.cluster.active_controller
        state = controller.image.partition(tp)
        assert state is not None
        change = InSyncChange(
            tp.topic, tp.partition, state.leader_epoch, state.partition_epoch, isr
        )
        epoch = controller.image.brokers[broker].epoch
        request = IsrRequest(broker, epoch, [change], version=3)
        try:
            controller.alter_partitions(request, now_ms=0)
        except KafkaError:
            pass  # It is in the transcript.
        self.cluster.settle()

    def outcome(self, topic: str) -> None:
        """How it stands in the end."""
        partitions = self.cluster.active_controller.image.topics[topic].partitions
        self.lines.append("")
        self.lines += [f"{topic}-{number} {_state(it)}." for number, it in enumerate(partitions)]


class _Listened(ControllerCore):
    """A core whose events and commands are written down."""

    def __init__(self, core: ControllerCore, broker: int, scenario: Scenario) -> None:
        super().__init__(core.context)
        self._broker = broker
        self._scenario = scenario
        self._pending: list[str] = []
        self._image = core.context.image

    def handle(self, event: events.Event) -> Command | Answer:
        if isinstance(event, events.Performed):
            self._say(f"  < {result}" if (result := _result(event.result)) else "")
        elif isinstance(event, events.Failed):
            self._say(f"  < {_error(event.error)}")
        else:
            gap = [""] if self._scenario.lines[-1] else []
            self._pending = [*gap, f"{_event(event)}    [controller {self._broker}]"]
            self._image = self.context.image
        before = self._image
        try:
            command = super().handle(event)
        except Exception as error:
            self._flush()
            self._say(f"  = {_error(error)}")
            raise
        if isinstance(command, Answer):
            if not self._pending and (answer := _answer(command.value)):
                self._say(f"  = {answer}")
        else:
            self._flush()
            for line in _command(command, before):
                self._say(f"  > {line}")
            if isinstance(command, commands.Publish):
                self._image = command.image
        return command

    def _flush(self) -> None:
        self._scenario.lines += self._pending
        self._pending = []

    def _say(self, line: str) -> None:
        if line:
            self._scenario.lines.append(line)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers)) or "none"


def _tp(tp: object) -> str:
    return f"{tp.topic}-{tp.partition}" if isinstance(tp, TopicPartition) else str(tp)


def _state(state: PartitionState) -> str:
    said = f"leader {state.leader}, epoch {state.leader_epoch}, isr {_ids(state.isr)}"
    if state.adding or state.removing:
        said += f", adding {_ids(state.adding)}, removing {_ids(state.removing)}"
    if state.offline:
        said += f", offline {_ids(state.offline)}"
    return said + f", replicas {_ids(state.replicas)}, version {state.partition_epoch}"


def _event(event: events.Event) -> str:
    match event:
        case events.AlterPartitionReceived(request):
            wanted = ", ".join(
                f"{it.topic}-{it.partition} isr {_ids(it.isr)}, epoch {it.leader_epoch}, "
                f"version {it.partition_epoch}"
                for it in request.changes
            )
            return f"AlterPartitionReceived: broker {request.broker_id}, {wanted}"
        case events.ControlledShutdown(broker, _):
            return f"ControlledShutdown: broker {broker}"
        case events.LogEndsReceived(broker, _, answered):
            ends = ", ".join(
                f"{_tp(tp)} ends at {it.log_end.end} of epoch {it.log_end.epoch}"
                for tp, it in answered.items()
            )
            return f"LogEndsReceived: broker {broker}, {ends}"
        case events.LeaderAndIsrResponseReceived(broker, answered):
            usable = ", ".join(
                f"{_tp(tp)} {'online' if it.usable else 'offline'}" for tp, it in answered.items()
            )
            return f"LeaderAndIsrResponseReceived: broker {broker}, {usable}"
        case events.ReplicaLeaderElection(kind, partitions):
            asked = "all" if partitions is None else ", ".join(map(_tp, partitions))
            return f"ReplicaLeaderElection: {kind.name.lower()}, {asked}"
        case events.ApiPartitionReassignment(wanted, _):
            moves = ", ".join(
                f"{_tp(tp)} to {_ids(to)}" if to is not None else f"{_tp(tp)} cancelled"
                for tp, to in wanted.items()
            )
            return f"ApiPartitionReassignment: {moves}"
        case _:
            return _other_event(event)


def _other_event(event: events.Event) -> str:
    match event:
        case events.TopicCreation(new, _, _):
            return f"TopicCreation: {', '.join(it.name for it in new)}"
        case events.PartitionCreation(growths, _, _):
            wanted = ", ".join(f"{it.name} to {it.count} partitions" for it in growths)
            return f"PartitionCreation: {wanted}"
        case events.AllocateProducerIds(broker, _, above):
            return f"AllocateProducerIds: broker {broker}, above {above}"
        case events.TopicDeletion(names) | events.TopicChange(names):
            return f"{type(event).__name__}: {', '.join(names)}"
        case events.TopicDeletionStopReplicaResponseReceived(broker, deleting, _):
            names = ", ".join(deleting) or "nothing"
            return f"TopicDeletionStopReplicaResponseReceived: broker {broker}, {names}"
        case events.PartitionReassignmentIsrChange(partitions):
            asked = "all" if partitions is None else ", ".join(map(_tp, partitions))
            return f"PartitionReassignmentIsrChange: {asked}"
        case events.AutoPreferredReplicaLeaderElection(share):
            return f"AutoPreferredReplicaLeaderElection: above {share} %"
        case _:
            return type(event).__name__


def _command(command: Command, image: MetadataImage) -> list[str]:
    match command:
        case commands.WriteEach(groups):
            return [
                f"write {' and '.join(map(_operation, operations))}"
                for operations in groups.values()
            ]
        case commands.Write(operations):
            return [f"write {' and '.join(map(_operation, operations))}"]
        case commands.ReadStates(partitions):
            return [f"read states of {', '.join(map(_tp, partitions))}"]
        case commands.ReadTopicZnodes(names):
            return [f"read what there is of {', '.join(names)}"]
        case commands.ReadExisting(paths):
            return [f"look for {', '.join(paths)}"]
        case commands.ReadTopics(names):
            return [f"read topics {'all' if names is None else ', '.join(names)}"]
        case commands.ReadAdminRequest(path):
            return [f"read {path}"]
        case commands.Publish(after):
            return [f"publish {each}" for each in _published(image, after)]
        case _:
            kind = type(command).__name__.removeprefix("Read")
            words = "".join(f" {it.lower()}" if it.isupper() else it for it in kind)
            return [f"read{words}"]


def _operation(operation: Operation) -> str:
    data = (getattr(operation, "data", None) or b"").decode()
    said = f" {data}" if data else ""
    match operation:
        case Create(path):
            return f"new {path}{said}"
        case SetData(path):
            return f"{path}{said} over version {operation.version}"
        case Delete(path):
            return f"no {path}"
        case _:
            return repr(operation)


def _published(before: MetadataImage, after: MetadataImage) -> list[str]:
    said = []
    if before.controller_id != after.controller_id:
        said.append(f"controller {after.controller_id}")
    if before.brokers != after.brokers:
        said.append(f"brokers {_ids(sorted(after.brokers))}")
    for each in after.differences(before):
        if each.after is None:
            said.append(f"no topic {each.name}")
        for number, _, state in each.partitions():
            said.append(f"{each.name}-{number}: {_state(state)}")
    return said or ["the same, with what is not in an image"]


def _result(result: Any) -> str:
    match result:
        case StoredProducerIdBlock(block, version):
            return f"up to {block.last}, version {version}"
        case StoredTopics():
            return f"topics {', '.join(sorted(result.found)) or 'none'}"
        case frozenset():
            return f"there: {', '.join(sorted(result)) or 'none'}"
        case set(), list():
            named = ", ".join(sorted(map(_tp, result[0])))
            return f"{named} in {len(result[1])} notification(s)" if result[1] else "none"
        case (bytes() as data,):
            return data.decode()
        case Mapping() if result and all(isinstance(it, KafkaError) for it in result.values()):
            return "refused: " + ", ".join(f"{_tp(key)} {it}" for key, it in result.items())
        case Mapping() if any(isinstance(it, StoredState) for it in result.values()):
            return ", ".join(
                f"{_tp(tp)} leader {it.state.leader}, epoch {it.state.leader_epoch}, "
                f"isr {_ids(it.state.isr)}, version {it.version}"
                for tp, it in result.items()
                if it is not None
            )
        case Mapping() if result:
            return ", ".join(map(str, sorted(result)))
        case list():
            return ", ".join(result) or "none"
        case _:
            return ""


def _answer(value: Any) -> str:
    match value:
        case None:
            return ""
        case dict():
            return ", ".join(f"{_tp(tp)} {_error(it)}" for tp, it in value.items()) or "done"
        case set():
            return ", ".join(sorted(map(_tp, value)))
        case [IsrAnswer(), *_]:
            return ", ".join(
                it.error.name + ("" if it.state is None else f", {_state(it.state)}")
                for it in value
            )
        case [CreatedTopic() | Outcome(), *_]:
            outcomes = [it.outcome if isinstance(it, CreatedTopic) else it for it in value]
            return ", ".join(f"{it.name} {it.error.name}" for it in outcomes)
        case list():
            return "left: " + (", ".join(map(_tp, value)) or "none")
        case _:
            return str(value)


def _error(error: Exception | None) -> str:
    if error is None:
        return "done"
    if isinstance(error, KafkaError):
        return error.code.name
    return type(error).__name__ if isinstance(error, ZooKeeperError) else repr(error)
