"""Fetch sessions, limits, epochs and errors, asked for over a bare socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.batch import headers
from tests.clients import START_MS, wire
from tests.clients.brokers import Broker
from tests.clients.conftest import MakeTopic
from tests.clients.wire import Wire

VERSION = 12


@pytest.fixture
def connection(broker: Broker) -> Iterator[Wire]:
    """One connection."""
    with Wire(broker.bootstrap) as opened:
        yield opened


def append(connection: Wire, topic: str, *values: bytes, partition: int = 0) -> None:
    """One batch."""
    request = wire.produce(topic, wire.some_batch(*values), partition=partition)
    answer = connection.ask(request, ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def wanted(topic: str, *offsets: int, limit: int = 1 << 20) -> list[FetchTopic]:
    """Partitions 0, 1, … of a topic from these offsets."""
    return [
        FetchTopic(
            topic=topic,
            partitions=[
                FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=limit)
                for number, offset in enumerate(offsets)
            ],
        )
    ]


def ask(
    connection: Wire,
    topics: list[FetchTopic],
    *,
    session: tuple[int, int] = (0, -1),
    max_bytes: int = 1 << 20,
    forgotten: list[ForgottenTopic] | None = None,
) -> FetchResponse:
    """Fetch without waiting; `session` is (id, epoch)."""
    request = FetchRequest(
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=forgotten or [],
    )
    return connection.ask(request, FetchResponse, VERSION)


def partitions(response: FetchResponse) -> dict[int, PartitionData]:
    """The answer's partitions of its one topic by number."""
    return {
        partition.partition_index: partition
        for topic in response.responses
        for partition in topic.partitions
    }


def offsets(partition: PartitionData) -> list[int]:
    """First offsets of the batches in an answer."""
    found = partition.records
    assert found is None or isinstance(found, (bytes, memoryview))
    return [header.base_offset for _, header in headers(found or b"", allow_partial=True)]


def test_a_session_returns_only_changed_partitions(connection: Wire, make_topic: MakeTopic) -> None:
    """A full fetch opens a session; what follows names only partitions with news (KIP-227)."""
    topic = make_topic(partitions=3)
    append(connection, topic, b"zero")
    opened = ask(connection, wanted(topic, 0, 0, 0), session=(0, 0))
    assert opened.error_code == 0
    assert opened.session_id != 0
    assert set(partitions(opened)) == {0, 1, 2}
    session = opened.session_id
    again = ask(connection, wanted(topic, 1), session=(session, 1))
    assert (again.session_id, again.responses) == (session, [])
    append(connection, topic, b"two", partition=2)
    news = ask(connection, [], session=(session, 2))
    assert set(partitions(news)) == {2}
    assert offsets(partitions(news)[2]) == [0]
    forgotten = [ForgottenTopic(topic=topic, partitions=[2])]
    assert ask(connection, [], session=(session, 3), forgotten=forgotten).responses == []
    append(connection, topic, b"two", partition=2)
    assert ask(connection, [], session=(session, 4)).responses == []


def test_session_errors(connection: Wire, topic: str) -> None:
    """A wrong epoch and an unknown session are told at the top, without partitions."""
    session = ask(connection, wanted(topic, 0), session=(0, 0)).session_id
    wrong = ask(connection, [], session=(session, 7))
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert wrong.responses == []
    unknown = ask(connection, [], session=(session ^ 0x55, 1))
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    closed = ask(connection, wanted(topic, 0), session=(session, -1))
    assert (closed.error_code, closed.session_id) == (0, 0)
    gone = ask(connection, [], session=(session, 1))
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_first_batch_is_whole_whatever_the_limits(connection: Wire, topic: str) -> None:
    """A consumer whose limits are below one batch still makes progress (KIP-74)."""
    for value in (bytes(5000), b"small"):
        append(connection, topic, value)
    found = partitions(ask(connection, wanted(topic, 0, limit=1), max_bytes=1))[0]
    assert offsets(found) == [0]
    assert isinstance(found.records, (bytes, memoryview))
    assert len(found.records) > 5000


def test_only_the_first_partition_may_exceed_the_limit(
    connection: Wire, make_topic: MakeTopic
) -> None:
    """The others come when the limit has room for them, in the request's order."""
    topic = make_topic(partitions=3)
    for number in (1, 2):
        append(connection, topic, bytes(3000), partition=number)
    found = partitions(ask(connection, wanted(topic, 0, 0, 0), max_bytes=100))
    assert {number: offsets(partition) for number, partition in found.items()} == {
        0: [],
        1: [0],
        2: [],
    }


def test_offset_inside_a_batch(connection: Wire, topic: str) -> None:
    """Batches are sent whole: the client leaves out what it has."""
    append(connection, topic, b"0", b"1", b"2")
    append(connection, topic, b"3")
    assert offsets(partitions(ask(connection, wanted(topic, 2)))[0]) == [0, 3]
    assert offsets(partitions(ask(connection, wanted(topic, 3)))[0]) == [3]
    assert offsets(partitions(ask(connection, wanted(topic, 4)))[0]) == []


def test_offsets_out_of_range_and_unknown_partitions(connection: Wire, topic: str) -> None:
    """Errors are per partition, beside the answers of the others."""
    append(connection, topic, b"0")
    beyond = partitions(ask(connection, wanted(topic, 2, 0)))
    assert beyond[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert beyond[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    missing = partitions(ask(connection, wanted("never-made", 0)))
    assert missing[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, 0), (0, 0), (1000, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_leader_epoch_of_the_client(connection: Wire, topic: str, epoch: int, code: int) -> None:
    """A client that knows of a later leader than the broker is told to ask again (KIP-320)."""
    asked = wanted(topic, 0)
    asked[0].partitions[0].current_leader_epoch = epoch
    assert partitions(ask(connection, asked))[0].error_code == code


def test_offset_for_leader_epoch(connection: Wire, topic: str) -> None:
    """The end of the current epoch is the end of the log; a later epoch is not known."""
    append(connection, topic, b"0", b"1")
    for version in range(5):
        for epoch, expected in [(0, (0, 2)), (5, (-1, -1))]:
            partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
            request = OffsetForLeaderEpochRequest(
                topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
            )
            answer = connection.ask(request, OffsetForLeaderEpochResponse, version)
            found = answer.topics[0].partitions[0]
            assert found.error_code == 0
            if version:
                assert (found.leader_epoch, found.end_offset) == expected
            else:
                assert found.end_offset == expected[1]


@pytest.mark.parametrize("version", range(8))
def test_list_offsets_in_all_versions(connection: Wire, topic: str, version: int) -> None:
    """Version 0 answers with a list of segment starts, the others with one offset."""
    append(connection, topic, b"0", b"1", b"2")
    for asked, expected in [(-1, 3), (-2, 0), (START_MS, 0)]:
        partition = ListOffsetsPartition(partition_index=0, timestamp=asked)
        if version == 0:
            partition.max_num_offsets = 10
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
        )
        answer = connection.ask(request, ListOffsetsResponse, version)
        found = answer.topics[0].partitions[0]
        assert found.error_code == 0
        if version:
            assert found.offset == expected
        elif asked == -1:
            assert found.old_style_offsets == [3, 0]
        elif asked == -2:
            assert found.old_style_offsets == [0]
