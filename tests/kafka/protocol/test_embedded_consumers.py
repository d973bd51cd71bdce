"""Records of the next-generation protocol: their bytes, and back."""

from uuid import UUID

from barnabas_kafka.protocol.embedded import pack, unpack
from barnabas_kafka.protocol.embedded_consumers import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    GroupExpressionKey,
    TopicMetadata,
)


def test_an_expression_s_key() -> None:
    """Version 16, and two plain strings."""
    key = GroupExpressionKey(group_id="g", regular_expression="a.*")
    assert pack(key, 16) == bytes.fromhex("0010 0001 67 0003 612e2a")


def test_the_hash_of_later_brokers_is_a_tagged_field() -> None:
    """Written only where there is one, so that Kafka 4.0 and 4.1 read the same bytes."""
    assert pack(ConsumerGroupMetadataValue(epoch=1), 0) == bytes.fromhex("0000 00000001 00")
    hashed = bytes.fromhex("0000 00000001 01 00 08 0000000000000002")
    assert unpack(ConsumerGroupMetadataValue, hashed).metadata_hash == 2


def test_topics_as_they_were_seen() -> None:
    """Id, name and number of partitions; racks are left out as Kafka 4.0 does."""
    topic = TopicMetadata(topic_id=UUID(int=1), topic_name="t", num_partitions=3)
    found = pack(ConsumerGroupPartitionMetadataValue(topics=[topic]), 0)
    assert found == b"\0\0\x02" + UUID(int=1).bytes + bytes.fromhex("02 74 00000003 01 00 00")


def test_classic_member_metadata_is_a_tagged_struct() -> None:
    """As Kafka 4.1 writes it: marked with 1 where there is any, and explicitly null elsewhere."""
    member = ConsumerGroupMemberMetadataValue(
        instance_id="",
        rack_id="",
        client_id="c",
        client_host="h",
        subscribed_topic_names=["t"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=5,
        server_assignor="",
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=7,
            supported_protocols=[ClassicProtocol(name="range", metadata=b"\1\2")],
        ),
    )
    reported = "0000 01 01 02 63 02 68 02 02 74 01 00000005 01"
    classic = bytes.fromhex(f"{reported} 01 00 11 01 00000007 02 06 72616e6765 03 0102 00 00")
    assert pack(member, 0) == classic
    assert unpack(ConsumerGroupMemberMetadataValue, classic) == member
    member.classic_member_metadata = None
    assert pack(member, 0) == bytes.fromhex(f"{reported} 01 00 01 00")
    assert unpack(ConsumerGroupMemberMetadataValue, pack(member, 0)) == member
