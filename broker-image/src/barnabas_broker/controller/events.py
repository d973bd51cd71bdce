"""What can happen to the active controller: the list of its events, by Kafka's names.

Kafka's `ControllerEvent`. Some come from requests, some from what others wrote to the coordination
store, some from what brokers answered; the last two are the results of commands. They are named
tuples, which a start makes in less time than dataclasses.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.controller.careful_election import EndsAnswer
from barnabas_broker.controller.isr_changes import IsrRequest
from barnabas_broker.controller.offline_replicas import Answered
from barnabas_broker.controller.requests import Admit, ElectionType, Growth, Wanted, admit_all
from barnabas_broker.controller.topics import NewTopic
from barnabas_kafka.ids import TopicPartition

# --- the beginning


class ControllerChange(NamedTuple):
    """This broker has been elected. `first_epoch` as for `ControllerContext.leading`."""

    first_epoch: int


# --- requests


class AlterPartitionReceived(NamedTuple):
    """A leader asks for changes of its ISRs. Answer: an `IsrAnswer` for each."""

    request: IsrRequest


class ControlledShutdown(NamedTuple):
    """A broker is about to stop. Answer: the partitions that it leads and no other one can."""

    broker: int
    broker_epoch: int


class TopicCreation(NamedTuple):
    """Topics are to be created, or only judged. Answer: a `CreatedTopic` for each.

    `admit` takes each topic's partitions from a quota.
    """

    new: Sequence[NewTopic]
    validate_only: bool = False
    admit: Admit = admit_all


class PartitionCreation(NamedTuple):
    """Topics are to have more partitions. Answer: an `Outcome` for each; else as for topics."""

    growths: Sequence[Growth]
    validate_only: bool = False
    admit: Admit = admit_all


class AllocateProducerIds(NamedTuple):
    """A broker needs a block of producer ids above `above`. Answer: the first id.

    `broker_epoch` is None where a broker claims for itself, which it may without a controller.
    """

    broker: int
    broker_epoch: int | None
    above: int


class TopicDeletion(NamedTuple):
    """Topics of the image are to be deleted. Answer: those that cannot be, and why."""

    names: Sequence[str]


class ReplicaLeaderElection(NamedTuple):
    """Leaders are to be elected, of partitions or of all. Answer: why not, None where done."""

    kind: ElectionType
    partitions: Sequence[TopicPartition] | None


class ApiPartitionReassignment(NamedTuple):
    """Partitions are to be moved, or moves to be ended. Answer: why not, None where it is done."""

    wanted: Wanted
    factor_may_change: bool = True


# --- timers


class AutoPreferredReplicaLeaderElection(NamedTuple):
    """Leadership goes back to brokers that lead too little. Answer: how many partitions."""

    imbalance_percentage: int


class ElectionsRetried(NamedTuple):
    """Elections that the store has refused are due again."""


# --- what others wrote


class BrokerChange(NamedTuple):
    """Brokers may have come or gone, or registered again."""


class IsrChangeNotification(NamedTuple):
    """Leaders may have written ISRs themselves. Answer: the partitions that were read again.

    `anything`: whatever else may have been written to states, too.
    """

    anything: bool


class LogDirEventNotification(NamedTuple):
    """Log directories of brokers may have changed."""


class TopicChange(NamedTuple):
    """Tools may have created topics, or added partitions to them."""

    names: Sequence[str]


class UncleanLeaderElectionEnable(NamedTuple):
    """Settings of topics or brokers may allow more elections than before."""


class PartitionReassignmentIsrChange(NamedTuple):
    """Moves may be over, of these partitions or of all."""

    partitions: Collection[TopicPartition] | None


class ZkReplicaLeaderElection(NamedTuple):
    """A tool up to 2.8 may ask for preferred leaders."""


class ZkPartitionReassignment(NamedTuple):
    """A tool up to 2.8 may ask for moves."""


# --- answers of brokers


class LeaderAndIsrResponseReceived(NamedTuple):
    """A broker has said which of its replicas can be used."""

    broker: int
    answered: Answered


class LogEndsReceived(NamedTuple):
    """A broker, registered so, has said how far its logs go (`careful_election`)."""

    broker: int
    broker_epoch: int
    answered: Mapping[TopicPartition, EndsAnswer]


class TopicDeletionStopReplicaResponseReceived(NamedTuple):
    """A broker has received which topics are being deleted; some it could not delete."""

    broker: int
    deleting: Mapping[str, TopicImage]
    refused: Collection[str]


class TopicDeletionRetried(NamedTuple):
    """Znodes of topics of which nothing is left may be there yet."""


# --- results of commands


class Performed(NamedTuple):
    """The command has been performed, with this result."""

    result: Any


class Failed(NamedTuple):
    """The command could not be performed."""

    error: Exception


Event: TypeAlias = (
    ControllerChange
    | AlterPartitionReceived
    | ControlledShutdown
    | TopicCreation
    | PartitionCreation
    | AllocateProducerIds
    | TopicDeletion
    | ReplicaLeaderElection
    | ApiPartitionReassignment
    | AutoPreferredReplicaLeaderElection
    | ElectionsRetried
    | BrokerChange
    | IsrChangeNotification
    | LogDirEventNotification
    | TopicChange
    | UncleanLeaderElectionEnable
    | PartitionReassignmentIsrChange
    | ZkReplicaLeaderElection
    | ZkPartitionReassignment
    | LeaderAndIsrResponseReceived
    | LogEndsReceived
    | TopicDeletionStopReplicaResponseReceived
    | TopicDeletionRetried
    | Performed
    | Failed
)
