"""What the two requests that commit offsets share: what is committed at all, and their answers.

Partitions that the caller may not read, or that do not exist, never reach the group; the others are
answered by it. Answers keep the order of the request. Requests may be large: each step yields.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

# An enum's members are looked up several times slower than names of the module.
_READ: Final = AclOperation.READ
_TOPIC: Final = ResourceType.TOPIC

Codes = dict[TopicPartition, ErrorCode]


class AskedPartition(Protocol):
    """A partition in a request."""

    partition_index: int


class AskedTopic(Protocol):
    """A topic in a request or an answer."""

    name: str
    partitions: list[Any]


T = TypeVar("T", bound=AskedTopic)
A = TypeVar("A", bound=AskedTopic)


def committable(name: str, call: RequestContext) -> TopicImage | ErrorCode:
    """A topic whose partitions the caller may commit, or the error code of all its partitions."""
    try:
        allowed = call.allowed(_READ, _TOPIC, name)
    except Exception as error:  # The boundary between one topic and the others.
        return refusal(error, "OffsetCommit", name).code
    if not allowed:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return call.broker.image.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def faults(topics: Sequence[AskedTopic], call: RequestContext) -> Work[Codes]:
    """The partitions that are not committed, whatever the group says."""
    found: Codes = {}
    for topic in topics:
        known = committable(topic.name, call)
        for entry in topic.partitions:
            yield
            partition = TopicPartition(topic.name, entry.partition_index)
            if isinstance(known, ErrorCode):
                found[partition] = known
            elif known.partition(entry.partition_index) is None:
                found[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


def without(topics: Sequence[T], left_out: Codes, make: Callable[..., T]) -> Work[list[T]]:
    """Copies of the topics with the partitions that are not left out."""
    some: list[T] = []
    for topic in topics:
        kept = [
            entry
            for entry in topic.partitions
            if TopicPartition(topic.name, entry.partition_index) not in left_out
        ]
        if kept:
            some.append(make(name=topic.name, partitions=kept))
        yield
    return some


def note(topics: Sequence[AskedTopic], codes: Codes) -> Work[None]:
    """Put what the group answered with the faults."""
    for topic in topics:
        for entry in topic.partitions:
            codes[TopicPartition(topic.name, entry.partition_index)] = ErrorCode(entry.error_code)
            yield


def in_order(
    asked: Sequence[AskedTopic],
    codes: Mapping[TopicPartition, ErrorCode],
    make: Callable[..., A],
    make_partition: Callable[..., Any],
) -> Work[list[A]]:
    """The answers for what was asked, made of the codes."""
    answers: list[A] = []
    for topic in asked:
        one = partial(_partition, topic.name, codes, make_partition)
        partitions = yield from each(topic.partitions, one)
        answers.append(make(name=topic.name, partitions=partitions))
    return answers


def _partition(
    topic: str,
    codes: Mapping[TopicPartition, ErrorCode],
    make: Callable[..., Any],
    asked: AskedPartition,
) -> Any:
    index = asked.partition_index
    return make(partition_index=index, error_code=codes[TopicPartition(topic, index)])
