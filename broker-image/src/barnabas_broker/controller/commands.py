"""What the controller's core wants done: writes, reads, the next image, and the answer.

A transition (`transitions`) yields one command at a time and is resumed with its result, or with
the error that it met. It can therefore be read from top to bottom, and each write is where it
belongs among the others. The performer of commands (`active_controller`) decides nothing.
"""

from collections.abc import Collection, Generator, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.controller.stored import StoredState, StoredTopics, TopicZnodes
from barnabas_broker.zk.operations import Operation
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition

Failures = Mapping[str, KafkaError]
"""Topics that a change could not be carried out for, and why."""


class DeletionPendingError(KafkaError):
    """A log of this broker is deleted behind its truncation; then it is confirmed."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, f"the log of {tp} is being truncated")


Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class WriteEach(NamedTuple):
    """Commit each group of operations, fenced by the controller epoch; one refused holds back none.

    Result: the groups that the store refused, and why. KafkaError where nothing can be written at
    all: NOT_CONTROLLER where another controller has followed, UNKNOWN_SERVER_ERROR where it is
    unknown what has been written.
    """

    groups: Mapping[Any, Sequence[Operation]]


class Write(NamedTuple):
    """Commit operations, fenced by the controller epoch. KafkaError as for `WriteEach`."""

    operations: Sequence[Operation]


class ReadStates(NamedTuple):
    """Read partitions' states as they are after all writes whose answers were lost.

    Result: the state of each, None where there is none; what cannot be read is left out, and
    logged. KafkaError as for `WriteEach`.
    """

    partitions: Sequence[TopicPartition]


class ReadTopicZnodes(NamedTuple):
    """Read which znodes there are of topics. Result: by name. KafkaError as for `WriteEach`."""

    names: Sequence[str]


class ReadExisting(NamedTuple):
    """Read which of these znodes there are. Result: a set of paths."""

    paths: Sequence[str]


class ReadTopics(NamedTuple):
    """Read topics with their partitions and settings, all that there are where no names are given.

    To `watch` is to be notified of the next change of each assignment. Result: a `StoredTopics`;
    topics that cannot be read are logged and left out.
    """

    names: Collection[str] | None = None
    watch: bool = False


class ReadBrokers(NamedTuple):
    """Read the registrations, and watch for the next change. Result: by id."""


class ReadDeletionMarks(NamedTuple):
    """Read which topics are marked for deletion. Result: their names."""


class ReadIsrChanges(NamedTuple):
    """Read the notifications of states that leaders have written themselves, and watch for more.

    Result: the partitions, and the paths of the notifications; those that cannot be read name none.
    """


class ReadLogDirEvents(NamedTuple):
    """Read the notifications of brokers whose log directories have changed, and watch for more.

    Result: the brokers, and the paths of the notifications.
    """


class ReadAdminRequest(NamedTuple):
    """Read what a tool up to 2.8 asks for in a znode of /admin, and, to `watch`, of the next time.

    Result: its data, which may be None, in a tuple; None where there is no such znode.
    """

    path: str
    watch: bool = True


class ReadProducerIdBlock(NamedTuple):
    """Read the block of producer ids claimed last. Result: `StoredProducerIdBlock`, or None."""


class ReadAllAgain(NamedTuple):
    """Have everything read again soon: another client wrote what only the controller writes."""


class Publish(NamedTuple):
    """Make an image the current one, and send each broker what concerns it.

    Result: the topics of which this broker could not do what the image says, and why.
    """

    image: MetadataImage


class Answer(NamedTuple):
    """The transition is over; this goes to its requester."""

    value: Any


Command: TypeAlias = (
    WriteEach
    | Write
    | ReadStates
    | ReadTopicZnodes
    | ReadExisting
    | ReadTopics
    | ReadBrokers
    | ReadDeletionMarks
    | ReadIsrChanges
    | ReadLogDirEvents
    | ReadAdminRequest
    | ReadProducerIdBlock
    | ReadAllAgain
    | Publish
)

Transition: TypeAlias = Generator[Command, Any, Result]
"""Yields commands, is sent their results, and returns the answer."""


def write_each(groups: Mapping[Key, Sequence[Operation]]) -> Transition[dict[Key, KafkaError]]:
    """`WriteEach`; nothing is written for nothing."""
    if not groups:
        return {}
    refused: dict[Key, KafkaError] = yield WriteEach(groups)
    return refused


def read_states(
    partitions: Sequence[TopicPartition],
) -> Transition[Mapping[TopicPartition, StoredState | None]]:
    """`ReadStates`."""
    found: Mapping[TopicPartition, StoredState | None] = yield ReadStates(partitions)
    return found


def read_topic_znodes(names: Sequence[str]) -> Transition[Mapping[str, TopicZnodes]]:
    """`ReadTopicZnodes`."""
    found: Mapping[str, TopicZnodes] = yield ReadTopicZnodes(names)
    return found


def read_existing(paths: Sequence[str]) -> Transition[Collection[str]]:
    """`ReadExisting`; nothing is asked for nothing."""
    if not paths:
        return frozenset()
    found: Collection[str] = yield ReadExisting(paths)
    return found


def read_topics(
    names: Collection[str] | None = None, *, watch: bool = False
) -> Transition[StoredTopics]:
    """`ReadTopics`; nothing is asked for nothing."""
    if names is not None and not names:
        return StoredTopics((), {})
    found: StoredTopics = yield ReadTopics(names, watch)
    return found
