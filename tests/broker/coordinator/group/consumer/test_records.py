"""The bytes of what groups of the consumer protocol write."""

from uuid import UUID

import pytest

from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import (
    ConsumerRecord,
    Kind,
    by_topic,
    decode,
    partitions_of,
)
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.embedded_consumers import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
)

TOPIC = UUID(int=1)
SOME = frozenset({(TOPIC, 2), (TOPIC, 0)})


def test_the_bytes_of_key_and_value() -> None:
    """Keys are not flexible, values are: a group's epoch, a member's target."""
    epoch = ConsumerRecord("g", Kind.GROUP, "", ConsumerGroupMetadataValue(epoch=5))
    assert epoch.encoded() == (
        bytes.fromhex("0003 0001 67"),
        bytes.fromhex("0000 00000005 00"),
    )
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=by_topic(SOME))
    target = ConsumerRecord("g", Kind.TARGET, "m", value)
    assert target.encoded() == (
        bytes.fromhex("0007 0001 67 0001 6d"),
        bytes.fromhex("0000 02") + TOPIC.bytes + bytes.fromhex("03 00000000 00000002 00 00"),
    )


FROM_APACHE = [
    (
        b"\x00\x05\x00\x01g\x00\x01m",
        b"\x00\x00\x02i\x00\x08rdkafka\x0b/127.0.0.1\x01\x05(^t)\x00\x04\x93\xe0\x00\x01\x00\x01\x00",
    ),
    (b"\x00\x03\x00\x01g", b"\x00\x00\x00\x00\x00\x01\x01\x00\x08\xda\xefC\xae\xc8\xc7\x96D"),
    (b"\x00\x06\x00\x01g", b"\x00\x00\x00\x00\x00\x02\x00"),
    (
        b"\x00\x07\x00\x01g\x00\x01m",
        (
            b"\x00\x00\x02-\xe3.\x1cSLE\xa8\x85|\x9c\x97\x02\x07\xa6 "
            b"\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00"
        ),
    ),
    (
        b"\x00\x08\x00\x01g\x00\x01m",
        (
            b"\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x01"
            b"\x02-\xe3.\x1cSLE\xa8\x85|\x9c\x97\x02\x07\xa6 \x02\x00\x00\x00\x00\x00"
            b"\x02-\xe3.\x1cSLE\xa8\x85|\x9c\x97\x02\x07\xa6 \x02\x00\x00\x00\x03\x00\x00"
        ),
    ),
    (b"\x00\x08\x00\x01g\x00\x01m", b"\x00\x00\xff\xff\xff\xfe\x00\x00\x00\x02\x00\x01\x01\x00"),
    (
        b"\x00\x10\x00\x01g\x00\x04(^t)",
        b"\x00\x00\x02\x02t\x00\x00\x00\x00\x00\x00\x00?\x00\x00\x01\xa1\xfb&\xf2\x17\x00",
    ),
]


@pytest.mark.parametrize(("key", "value"), FROM_APACHE)
def test_records_of_kafka_4_1_are_encoded_identically(key: bytes, value: bytes) -> None:
    """Byte for byte; taken from a broker's log, with shorter names."""
    record = decode(key[1], key, value)
    assert record is not None
    assert record.encoded() == (key, value)


def test_a_member_s_record_is_as_apache_writes_it() -> None:
    """With an explicit null where members of the classic protocol have more."""
    member = ConsumerMember(
        id="m",
        instance_id="i",
        client_id="rdkafka",
        client_host="/127.0.0.1",
        regex="(^t)",
        rebalance_timeout_ms=300_000,
    )
    assert member.subscription_record("g").encoded() == FROM_APACHE[0]


@pytest.mark.parametrize("kind", list(Kind))
def test_a_tombstone_names_what_ends(kind: Kind) -> None:
    """Every kind has one."""
    part = "" if kind in (Kind.GROUP, Kind.TOPICS, Kind.TARGET_EPOCH) else "m"
    record = ConsumerRecord("g", kind, part, None)
    key, value = record.encoded()
    assert value is None
    assert decode(kind, key, value) == record


def test_unknown_keys_are_skipped_and_garbage_is_refused() -> None:
    """The former is none of ours, the latter an error."""
    assert decode(9, b"\0\x09\0\1g", None) is None
    with pytest.raises(DecodeError):
        decode(3, b"\0\3\0\5g", None)


def test_partitions_are_written_in_one_order() -> None:
    """Whatever order the set has."""
    assert [each.partitions for each in by_topic(SOME)] == [[0, 2]]
    assert partitions_of(by_topic(SOME)) == SOME
