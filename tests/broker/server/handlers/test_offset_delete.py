"""OffsetDelete on a running broker."""

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.broker.server.members import commit, committed, find
from tests.broker.server.running import Wire


def test_single_offsets_are_deleted(wire: Wire, topic: str) -> None:
    """Partitions that do not exist are told; unknown groups are an error of the whole."""
    find(wire, "g")
    assert commit(wire, "g", topic, 4) == 0
    partitions = [OffsetDeleteRequestPartition(partition_index=each) for each in (0, 9)]
    request = OffsetDeleteRequest(
        group_id="g", topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    )
    answer = wire.ask(request, 0)
    assert answer.error_code == 0
    (told,) = answer.topics
    assert {each.partition_index: each.error_code for each in told.partitions} == {
        0: 0,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert committed(wire, "g", topic) == -1
    request.group_id = "unknown"
    assert wire.ask(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    request.group_id = ""
    assert wire.ask(request, 0).error_code == ErrorCode.INVALID_GROUP_ID
