"""The records of __consumer_offsets, byte for byte."""

import pytest

from barnabas_broker.coordinator.group.records import (
    CommittedOffset,
    GroupRecord,
    OffsetRecord,
    decode,
    encode,
)
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.embedded import GroupMetadataValue, MemberMetadata

PARTITION = TopicPartition("t", 3)
OFFSET = OffsetRecord(
    "g", PARTITION, CommittedOffset(offset=5, commit_timestamp=9, metadata="m", leader_epoch=2)
)
GROUP = GroupRecord(
    "g",
    GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="a",
        current_state_timestamp=7,
        members=[
            MemberMetadata(
                member_id="a",
                group_instance_id=None,
                client_id="c",
                client_host="/h",
                rebalance_timeout=1,
                session_timeout=2,
                subscription=b"s",
                assignment=b"x",
            )
        ],
    ),
)
GROUP_VALUE = (
    "0003 0008 636f6e73756d6572 00000004 0005 72616e6765 0001 61 0000000000000007"
    " 00000001 0001 61 ffff 0001 63 0002 2f68 00000001 00000002 00000001 73 00000001 78"
)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (
            OFFSET,
            "0001 0001 67 0001 74 00000003",
            "0003 0000000000000005 00000002 0001 6d 0000000000000009",
        ),
        (OffsetRecord("g", PARTITION, None), "0001 0001 67 0001 74 00000003", None),
        (
            OffsetRecord(
                "g", PARTITION, CommittedOffset(offset=5, commit_timestamp=9, expire_timestamp=11)
            ),
            "0001 0001 67 0001 74 00000003",
            "0001 0000000000000005 0000 0000000000000009 000000000000000b",
        ),
        (
            GROUP,
            "0002 0001 67",
            GROUP_VALUE,
        ),
        (GroupRecord("g", None), "0002 0001 67", None),
    ],
)
def test_records_have_kafkas_bytes(
    record: OffsetRecord | GroupRecord, key: str, value: str | None
) -> None:
    """In the versions that Kafka 3.9 writes, and back."""
    encoded = encode(record)
    assert encoded == (bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    assert decode(*encoded) == record


def test_unknown_record_types_are_skipped_and_garbage_is_refused() -> None:
    """Those of share groups are unknown here; garbage is an error."""
    assert decode(bytes.fromhex("0009 0001 67"), b"") is None
    for key in (b"", b"\0", b"\0\1\0\5g"):
        with pytest.raises(DecodeError):
            decode(key, None)
