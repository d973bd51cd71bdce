"""The short way of Produce and the general one: the same answers, and the same logs."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.requests.fast import produce as fast_produce
from barnabas_broker.server.requests.handlers import produce
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.plain_produce import read as read_plain
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.server.produce_pair import NOW, Pair, running_pair, sampled_batches
from tests.broker.server.running import Wire, port_of, produce_request

TOPICS = ("plain", "compact", "stamped", "small", "unpacked", "nowhere")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One pair for the module."""
    with running_pair(tmp_path_factory.mktemp("pair")) as running:
        yield running


REQUESTS = st.builds(
    ProduceRequest,
    acks=st.sampled_from((-1, -1, 1, 1, 2)),
    timeout_ms=st.just(1000),
    topic_data=st.lists(
        st.builds(
            TopicProduceData,
            name=st.sampled_from(TOPICS),
            partition_data=st.lists(
                st.builds(
                    PartitionProduceData,
                    index=st.sampled_from((0, 0, 0, 1, 2)),
                    records=st.none() | sampled_batches() | sampled_batches(),
                ),
                min_size=1,
                max_size=4,
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)


@given(request=REQUESTS, version=st.integers(3, 12))
def test_random_requests_get_the_same_answer(
    pair: Pair, request: ProduceRequest, version: int
) -> None:
    """Partition by partition, whatever is wrong with one of them and wherever it comes."""
    for topic in request.topic_data:
        if topic.name == "stamped":
            for data in topic.partition_data:
                data.records = None  # Answers would hold the time of each broker.
    pair.ask(request, version)
    pair.compare_logs()


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_retries_get_their_first_offset(pair: Pair, codec: Codec) -> None:
    """A sequence that came before is told where it is, by either way; the next one follows.

    One that does not follow, or of an epoch that is over, is refused as the general way does.
    """
    for epoch, sequence in ((0, 0), (0, 0), (0, 1), (0, 1), (0, 5), (1, 3), (1, 0), (0, 2), (1, 1)):
        batch = build_batch(
            [(NOW, b"k", b"v" * 50, ())],
            codec=codec,
            producer_id=77 + codec,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        pair.ask(produce_request("compact", batch), 9)
    pair.compare_logs()


def test_sequences_go_on_by_either_way(pair: Pair) -> None:
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
        pair.ask(produce_request("plain", batch), 9)
    pair.compare_logs()


def test_compressed_records_that_hold_much_are_served_elsewhere(pair: Pair) -> None:
    """A few kilobytes may hold megabytes: that is found out, and nothing is appended twice."""
    for codec in Codec:
        if codec is not Codec.NONE:
            batch = build_batch([(NOW, None, bytes(1_200_000), ())], codec=codec)
            pair.ask(produce_request("plain", batch), 9)
    pair.compare_logs()


def test_what_comes_behind_a_served_partition_is_served_too(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The general way goes on where the short one stopped, and serves nothing twice."""
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
        pair.ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), version)
    pair.compare_logs()


def test_large_requests_go_the_general_way(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not copied as a whole; in all else they are as the others."""
    monkeypatch.setattr(fast_produce, "FRAME_BYTES_AT_ONCE", 2000)
    ways: list[int] = []

    def read(data: bytes, *limits: int) -> object:
        ways.append(len(data))
        return read_plain(data, *limits)

    monkeypatch.setattr("barnabas_broker.server.requests.fast.produce.read", read)
    for length in (1000, 3000):
        pair.ask(produce_request("plain", build_batch([(NOW, None, bytes(length), ())])), 8)
    assert len(ways) == 1
    pair.compare_logs()


def test_ordinary_requests_do_not_reach_the_general_way(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without producer ids, for several partitions, and with no response at all."""
    monkeypatch.setattr(produce, "resume", None)
    with Wire(port_of(pair.nodes[0])) as wire:
        wire.create_topic("ordinary")
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
    """Metrics of a topic do not depend on the way its records took."""
    for codec in (Codec.NONE, Codec.ZSTD):
        pair.ask(produce_request("plain", build_batch([(NOW, None, b"v", ())], codec=codec)), 8)
    short, general = (node.broker.replicas.traffic["plain"] for node in pair.nodes)
    assert [getattr(short, name) for name in short.__slots__] == [
        getattr(general, name) for name in general.__slots__
    ]


def test_a_bug_on_the_short_way_ends_the_connection_and_is_logged(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was appended is not known then: no answer would be true, nor may it be tried again."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Partition, "append_plain", broken)
    with Wire(port_of(pair.nodes[0])) as wire:
        wire.send(produce_request("plain", build_batch([(NOW, None, b"v", ())])), 9)
        assert wire.closed_by_broker()
    assert "a bug" in caplog.text
