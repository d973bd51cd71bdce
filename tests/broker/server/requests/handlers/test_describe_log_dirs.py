"""DescribeLogDirs, as a client sees it."""

import shutil
import threading
from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import volumes
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, port_of
from tests.waiting import wait_for

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


def test_a_disk_that_hangs_holds_up_neither_the_answer_nor_others(
    node: BrokerServer, wire: Wire, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partitions are known, the volume is not; it is asked once, however often clients ask."""
    held, asked = threading.Event(), []
    real = shutil.disk_usage

    def hanging(path: Path) -> object:
        if threading.current_thread().name.startswith("volume"):
            asked.append(path)
            held.wait()
        return real(path)

    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=[0])])
    wire.produce(topic, BATCH)
    monkeypatch.setattr(shutil, "disk_usage", hanging)
    try:
        wire.send(request, 4)
        with Wire(port_of(node)) as other:
            assert other.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
        monkeypatch.setattr(volumes, "DEADLINE_S", 0.01)
        answers = [wire.receive(DescribeLogDirsResponse, 4)[1], wire.ask(request, 4)]
    finally:
        held.set()
    for answer in answers:
        (result,) = answer.results
        assert (result.error_code, result.total_bytes, result.usable_bytes) == (0, -1, -1)
        assert result.topics[0].partitions[0].partition_size >= len(BATCH)
    assert len(asked) == 1
    monkeypatch.undo()
    wait_for(
        "the volume",
        lambda: wire.ask(request, 4).results[0].total_bytes,
        until=lambda size: size > 0,
    )
