"""Messages inside records and other messages."""

import pytest

from barnabas_kafka.protocol.codec import DecodeError, encode
from barnabas_kafka.protocol.embedded import (
    ConsumerProtocolSubscription,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    pack,
    subscribed_topics,
    unpack,
)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_an_offset_is_read(version: int) -> None:
    """What a version does not carry has its default."""
    value = OffsetCommitValue(offset=3, metadata="m", commit_timestamp=4)
    assert unpack(OffsetCommitValue, pack(value, version)) == value


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    """From the first, without timestamps, to the flexible one."""
    value = GroupMetadataValue(protocol_type="consumer", generation=2, protocol=None, leader=None)
    assert unpack(GroupMetadataValue, pack(value, version)) == value


def test_unknown_versions_are_refused() -> None:
    """Nobody knows what stands behind them."""
    with pytest.raises(DecodeError, match="no version 9"):
        unpack(OffsetCommitKey, b"\0\x09")
    with pytest.raises(DecodeError, match="no room"):
        unpack(OffsetCommitKey, b"\0")


def test_topics_are_read_from_any_subscription() -> None:
    """Newer versions only add fields behind them; what is no subscription gives None."""
    topics = encode(ConsumerProtocolSubscription(topics=["a", "b"]), 0)
    for version in (b"\0\0", b"\0\3", b"\0\x2a"):
        assert subscribed_topics(version + topics + b"more") == frozenset("ab")
    assert subscribed_topics(b"") is None
    assert subscribed_topics(b"\0\0\x7f\xff\xff\xff") is None
