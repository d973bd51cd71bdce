"""What consumers tell each other through the classic protocol."""

import pytest

from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
)
from barnabas_kafka.protocol.embedded import pack

OWNED = [TopicPartitions(topic="t", partitions=[1, 2])]


def test_fields_of_each_version() -> None:
    """Owned partitions from version 1 on, their generation from 2, the rack from 3."""
    full = Subscription(topics=["t"], owned_partitions=OWNED, generation_id=7, rack_id="r")
    known = [
        (read.topics, read.owned_partitions, read.generation_id, read.rack_id)
        for read in (read_subscription(pack(full, version)) for version in range(4))
    ]
    assert known == [
        (["t"], [], -1, None),
        (["t"], OWNED, -1, None),
        (["t"], OWNED, 7, None),
        (["t"], OWNED, 7, "r"),
    ]


def test_later_versions_are_read_as_the_newest_one() -> None:
    """What stands behind is skipped."""
    later = b"\0\x09" + pack(Subscription(topics=["t"]), 3)[2:] + b"more"
    assert read_subscription(later).topics == ["t"]


def test_the_bytes_of_an_assignment() -> None:
    """In the version of the member's metadata, without user data; nothing is an empty one."""
    metadata = pack(Subscription(topics=["t"]), 1)
    written = write_assignment(OWNED, metadata=metadata)
    assert written == bytes.fromhex("0001 00000001 0001 74 00000002 00000001 00000002 ffffffff")
    assert read_assignment(written).assigned_partitions == OWNED
    assert read_assignment(b"") == Assignment()
    assert write_assignment([], metadata=b"\0\x09")[:2] == b"\0\x03"


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\1"])
def test_malformed_subscriptions_are_refused(data: bytes) -> None:
    """Too short, a negative version, or cut off."""
    with pytest.raises(DecodeError):
        read_subscription(data)
    with pytest.raises(DecodeError):
        read_assignment(data)
