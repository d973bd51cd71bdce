"""The messages of consumers to each other in the classic protocol (protocol type "consumer").

Clients define it, and a coordinator passes it on unread; but one that takes the place of the
group's leader (KIP-848) reads subscriptions and writes assignments. Versions above the newest one
known are read as that, as clients do among each other.
"""

from collections.abc import Iterable

from barnabas_kafka.primitives import Buffer
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.embedded import pack, version_of
from barnabas_kafka.protocol.schema import (
    INT32,
    STRING,
    Message,
    Struct,
    array,
    binary,
    int32,
    string,
)

_AFTER_VERSION = 2


class TopicPartitions(Struct):
    """Some partitions of a topic."""

    topic: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class Subscription(Message, versions="0-3"):
    """What a consumer wants, and from version 1 on what it reads already."""

    topics: list[str] = array(STRING, "0+")
    user_data: bytes | None = binary("0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartitions] = array(TopicPartitions, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class Assignment(Message, versions="0-3"):
    """The partitions of a consumer."""

    assigned_partitions: list[TopicPartitions] = array(TopicPartitions, "0+")
    user_data: bytes | None = binary("0+", nullable="0+", default=None)


def read_subscription(metadata: Buffer) -> Subscription:
    """A member's subscription; raises DecodeError."""
    version = _known(version_of(metadata))
    return codec.decode_from(Subscription, metadata, version, _AFTER_VERSION)[0]


def read_assignment(data: Buffer) -> Assignment:
    """A member's assignment, empty where it never had one; raises DecodeError."""
    if not len(data):
        return Assignment()
    return codec.decode_from(Assignment, data, _known(version_of(data)), _AFTER_VERSION)[0]


def write_assignment(topics: Iterable[TopicPartitions], *, metadata: Buffer) -> bytes:
    """An assignment in the version in which its member speaks; raises DecodeError."""
    version = _known(version_of(metadata))
    return pack(Assignment(assigned_partitions=list(topics)), version)


def _known(version: int) -> int:
    if version < 0:
        raise codec.DecodeError(f"{version} is no version of the consumer protocol")
    return min(version, Assignment.versions.max)
