"""DescribeLogDirs, as a client sees it."""

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire

BATCH = build_batch([(1000, None, b"value", ())])


@pytest.mark.parametrize("version", range(5))
def test_sizes_are_those_of_the_logs(
    node: BrokerServer, wire: Wire, topic: str, version: int
) -> None:
    """Bytes of log, by partition; the volume's own from version 4 on."""
    wire.produce(topic, BATCH)
    (result,) = wire.ask(DescribeLogDirsRequest(topics=None), version).results
    sizes = {
        (found.name, partition.partition_index): partition.partition_size
        for found in result.topics
        for partition in found.partitions
    }
    assert sizes[topic, 0] == len(BATCH)
    assert result.log_dir == str(node.broker.logs.first)
    assert (result.total_bytes > result.usable_bytes > 0) == (version >= 4)


def test_only_what_was_asked_for(wire: Wire, topic: str) -> None:
    """A list of partitions narrows the answer; unknown ones are left out."""
    asked = [DescribableLogDirTopic(topic=topic, partitions=[0, 7])]
    (result,) = wire.ask(DescribeLogDirsRequest(topics=asked), 4).results
    assert [
        (found.name, [entry.partition_index for entry in found.partitions])
        for found in result.topics
    ] == [(topic, [0])]
