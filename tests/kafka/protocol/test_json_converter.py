"""Messages as JSON, as Kafka's converters write them."""

from uuid import UUID

from barnabas_kafka.protocol import json_converter
from barnabas_kafka.protocol.embedded import MemberMetadata, OffsetCommitValue, TransactionLogValue
from barnabas_kafka.protocol.embedded_consumers import AssignedTopic


def test_only_the_fields_of_the_version_are_written() -> None:
    """In the order of the schema; a tagged field only where it is not its default."""
    value = OffsetCommitValue(offset=1, leader_epoch=2, metadata="ü", expire_timestamp=4)
    assert json_converter.dumps(json_converter.write(value, 3)) == (
        '{"offset":1,"leaderEpoch":2,"metadata":"ü","commitTimestamp":0}'
    )
    assert list(json_converter.write(value, 1))[-1] == "expireTimestamp"
    assert "nextProducerId" not in json_converter.write(TransactionLogValue(), 1)
    assert json_converter.write(TransactionLogValue(next_producer_id=7), 1)["nextProducerId"] == 7


def test_bytes_ids_and_arrays() -> None:
    """Base64 with padding, Kafka's text of ids, null where there is none."""
    member = json_converter.write(MemberMetadata(subscription=b"\xff"), 3)
    assert member["subscription"] == "/w=="
    assert member["groupInstanceId"] is None
    topic = AssignedTopic(topic_id=UUID(int=7), partitions=[0, 2])
    assert json_converter.write(topic, 0) == {
        "topicId": "AAAAAAAAAAAAAAAAAAAABw",
        "partitions": [0, 2],
    }
