"""The fast route of Produce and the handler: the same answers, and the same logs."""

from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_broker.server.requests.fast import produce as fast_produce
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.plain_produce import read as read_plain
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.server.requests.fast.differential import NOW, Pair
from tests.broker.server.running import Wire, port_of, produce_request, running_node


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_retries_get_their_first_offset(pair: Pair, codec: Codec) -> None:
    """A sequence that came before is told where it is, by either route; the next one follows.

    One that does not follow, or of an epoch that is over, is refused as the handler does.
    """
    for epoch, sequence in ((0, 0), (0, 0), (0, 1), (0, 1), (0, 5), (1, 3), (1, 0), (0, 2), (1, 1)):
        batch = build_batch(
            [(NOW, b"k", b"v" * 50, ())],
            codec=codec,
            producer_id=77 + codec,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        pair.ask((produce_request("compact", batch), 9))
    pair.compare_logs()


def test_sequences_go_on_by_either_route(pair: Pair) -> None:
    """Several producers take turns, go round the highest sequence, and begin a new epoch."""
    highest = (1 << 31) - 1
    turns = [(80, 0, highest - 2), (81, 0, 0), (80, 0, highest), (81, 0, 2), (80, 0, 1), (80, 0, 3)]
    for producer, epoch, sequence in [*turns, *turns, (81, 1, 0), (81, 1, 2), (81, 0, 4)]:
        batch = build_batch(
            [(NOW, None, b"v", ()), (NOW + 1, None, b"w", ())],
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        pair.ask((produce_request("plain", batch), 9))
    pair.compare_logs()


def test_compressed_records_that_hold_much_are_served_elsewhere(pair: Pair) -> None:
    """A few kilobytes may hold megabytes: that is found out, and nothing is appended twice."""
    for codec in Codec:
        if codec is not Codec.NONE:
            batch = build_batch([(NOW, None, bytes(1_200_000), ())], codec=codec)
            pair.ask((produce_request("plain", batch), 9))
    pair.compare_logs()


def test_the_handler_continues_where_the_fast_path_stopped(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler goes on where the fast route stopped, and serves nothing twice."""
    monkeypatch.setattr(fast_produce, "PACKED_BYTES_MAX", 0)
    batch = build_batch([(NOW, b"k", b"v", ())])
    packed = build_batch([(NOW, b"k", b"v" * 100, ())], codec=Codec.LZ4)
    data = [
        PartitionProduceData(index=0, records=batch),
        PartitionProduceData(index=1, records=packed),
        PartitionProduceData(index=2, records=batch),
        PartitionProduceData(index=9, records=batch),
        PartitionProduceData(index=0, records=batch),
    ]
    topic = TopicProduceData(name="plain", partition_data=data)
    for version in (3, 9):
        pair.ask((ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), version))
    pair.compare_logs()


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), OSError("a disk")])
def test_one_partition_that_fails_leaves_the_others_alone(
    tmp_path: Path,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its error is logged and answered in its place, and it is not tried again."""
    real, tried = Partition.append_plain, []

    def broken(self: Partition, *args: Any, **more: Any) -> int:
        tried.append(self.tp.partition)
        if self.tp.partition == 1:
            raise error
        return real(self, *args, **more)

    batch = build_batch([(NOW, b"k", b"v", ())])
    data = [PartitionProduceData(index=index, records=batch) for index in (0, 1, 2)]
    topics = [TopicProduceData(name="t", partition_data=data)]
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", partitions=3)
        with monkeypatch.context() as patch:
            patch.setattr(Partition, "append_plain", broken)
            answer = wire.ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=topics), 9)
        ends = [node.broker.replicas.led("t", index).log.log_end_offset for index in (0, 1, 2)]
        failed = node.broker.replicas.traffic["t"].produces_failed
    storage, unknown = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR
    expected = storage if isinstance(error, OSError) else unknown
    codes = [each.error_code for each in answer.responses[0].partition_responses]
    assert (codes, tried, ends, failed) == ([0, expected, 0], [0, 1], [1, 0, 1], 1)
    assert "Produce of t-1 failed" in caplog.text
    assert str(error) in caplog.text


def test_large_requests_go_to_the_handler(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not copied as a whole; in all else they are as the others."""
    monkeypatch.setattr(fast_produce, "FRAME_BYTES_AT_ONCE", 2000)
    ways: list[int] = []

    def read(data: bytes, *limits: int) -> object:
        ways.append(len(data))
        return read_plain(data, *limits)

    monkeypatch.setattr("barnabas_broker.server.requests.fast.produce.read", read)
    for length in (1000, 3000):
        pair.ask((produce_request("plain", build_batch([(NOW, None, bytes(length), ())])), 8))
    assert len(ways) == 1
    pair.compare_logs()


def test_ordinary_requests_do_not_reach_the_handler(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without producer ids, for several partitions, and with no response at all."""
    with Wire(port_of(pair.nodes[0])) as wire:
        wire.create_topic("ordinary")
        monkeypatch.setattr(Dispatcher, "_handled", None)
        for acks in (0, 1, -1):
            batch = build_batch([(NOW, None, b"v", ())])
            wire.send(produce_request("ordinary", batch, acks=acks), 7)
            if acks:
                assert wire.receive_frame()
        sequenced = build_batch(
            [(NOW, None, b"v", ())], producer_id=78, producer_epoch=0, base_sequence=0
        )
        assert wire.produce("ordinary", sequenced).base_offset == 3
        for offset, codec in enumerate(Codec, 4):
            packed = build_batch(
                [(NOW, None, b"v" * 100, ())],
                codec=codec,
                producer_id=79,
                producer_epoch=0,
                base_sequence=offset,
            )
            assert wire.produce("ordinary", packed).base_offset == offset


def test_traffic_is_counted_alike(pair: Pair) -> None:
    """Metrics of a topic do not depend on the route that its records took."""
    for codec in (Codec.NONE, Codec.ZSTD):
        pair.ask((produce_request("plain", build_batch([(NOW, None, b"v", ())], codec=codec)), 8))
    short, general = (node.broker.replicas.traffic["plain"] for node in pair.nodes)
    assert [getattr(short, name) for name in short.__slots__] == [
        getattr(general, name) for name in general.__slots__
    ]
