"""DeleteRecords, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, port_of, running_node

BATCH = build_batch([(1000, None, b"value", ())])


def delete(wire: Wire, topic: str, offset: int) -> DeleteRecordsPartitionResult:
    """Delete what lies before `offset` of partition 0."""
    entry = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        timeout_ms=1000, topics=[DeleteRecordsTopic(name=topic, partitions=[entry])]
    )
    answer: DeleteRecordsPartitionResult = wire.ask(request, 2).topics[0].partitions[0]
    return answer


@pytest.mark.parametrize(("offset", "start"), [(2, 2), (-1, 3), (3, 3)])
def test_the_log_starts_later(wire: Wire, topic: str, offset: int, start: int) -> None:
    """What lies before is out of range at once; -1 stands for everything."""
    for _ in range(3):
        wire.produce(topic, BATCH)
    answer = delete(wire, topic, offset)
    assert (answer.error_code, answer.low_watermark) == (0, start)
    assert wire.fetch(topic, start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert wire.fetch(topic, start).log_start_offset == start


@pytest.mark.parametrize("offset", [1, -2])
def test_offsets_that_do_not_exist(wire: Wire, topic: str, offset: int) -> None:
    """Nothing beyond the high watermark can be deleted."""
    assert delete(wire, topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_compacted_topic_deletes_nothing(wire: Wire) -> None:
    """Only what may be deleted by age or size may be deleted by hand."""
    wire.create_topic("compacted", cleanup_policy="compact")
    assert delete(wire, "compacted", 0).error_code == ErrorCode.POLICY_VIOLATION
    wire.create_topic("both", cleanup_policy="compact,delete")
    assert delete(wire, "both", 0).error_code == 0


def test_an_unknown_topic(wire: Wire) -> None:
    """A partition that is not here has nothing to delete."""
    answer = delete(wire, "nowhere", 0)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    """The log start outlives the broker, though the segment file still holds the bytes."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        for _ in range(3):
            wire.produce("t", BATCH)
        delete(wire, "t", 2)
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        assert wire.fetch("t", 2).log_start_offset == 2
        assert wire.fetch("t", 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
