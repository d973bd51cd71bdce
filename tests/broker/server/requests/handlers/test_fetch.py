"""Fetch, as a client sees it."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import MSG_PEEK
from threading import Thread
from typing import Any, NoReturn

import pytest

from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import cooperative_scheduler
from barnabas_broker.server.requests.handlers import fetch
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from barnabas_kafka.records.batch import records
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.legacy import messages
from tests.broker.server.running import Wire, fetch_request, port_of, running_node


def batch(*values: bytes, codec: Codec = Codec.NONE) -> bytes:
    """A batch with those values, timestamps 0, 1, 2 …"""
    return build_batch([(time, None, value, ()) for time, value in enumerate(values)], codec=codec)


def offsets(data: PartitionData) -> list[int]:
    """The offsets of all records in a partition's answer."""
    found: list[int] = []
    view = bytes(data.records or b"")  # type: ignore[arg-type]
    position = 0
    while position < len(view):
        found += [record.offset for record in records(view, position)]
        position += 12 + int.from_bytes(view[position + 8 : position + 12], "big")
    return found


def test_whole_batches_from_the_one_that_holds_the_offset(wire: Wire, topic: str) -> None:
    """A fetch into the middle of a batch returns all of it; the client drops the prefix."""
    wire.produce(topic, batch(b"a", b"b", b"c"))
    wire.produce(topic, batch(b"d"))
    assert offsets(wire.fetch(topic, 1)) == [0, 1, 2, 3]
    assert offsets(wire.fetch(topic, 3)) == [3]


def test_limits_are_soft_for_the_first_batch(wire: Wire, topic: str) -> None:
    """KIP-74: one whole batch always comes, so that a consumer never gets stuck."""
    for _ in range(3):
        wire.produce(topic, batch(b"x" * 1000))
    assert offsets(wire.fetch(topic, max_bytes=1)) == [0]
    assert offsets(wire.fetch(topic, partition_max_bytes=1)) == [0]
    assert offsets(wire.fetch(topic, partition_max_bytes=2500)) == [0, 1]


def test_limits_are_hard_before_version_3(wire: Wire, topic: str) -> None:
    """Old clients are promised that no response exceeds what they asked for."""
    wire.produce(topic, batch(b"x" * 1000))
    response: FetchResponse = wire.ask(fetch_request([(topic, 0, 0)], partition_max_bytes=100), 2)
    assert bytes(response.responses[0].partitions[0].records or b"") == b""  # type: ignore[arg-type]


def test_the_response_limit_spans_partitions(wire: Wire) -> None:
    """What the first partition took is not there for the second."""
    wire.create_topic("spanning", partitions=2)
    for partition in range(2):
        wire.produce("spanning", batch(b"x" * 1000), partition=partition)
    response: FetchResponse = wire.ask(
        fetch_request([("spanning", 0, 0), ("spanning", 1, 0)], max_bytes=1200), 12
    )
    sizes = [
        len(bytes(partition.records or b""))  # type: ignore[arg-type]
        for topic in response.responses
        for partition in topic.partitions
    ]
    assert sizes[0] > 1000
    assert sizes[1] == 0


def test_at_the_end_there_is_nothing_yet(wire: Wire, topic: str) -> None:
    """The end of the log is a place to wait at, not an error."""
    wire.produce(topic, batch(b"a"))
    data = wire.fetch(topic, 1)
    assert (data.error_code, data.high_watermark, offsets(data)) == (0, 1, [])


@pytest.mark.parametrize("offset", [-1, 2, 10**12])
def test_offsets_out_of_range(wire: Wire, topic: str, offset: int) -> None:
    """Below the start and above the end; the client then asks where to go."""
    wire.produce(topic, batch(b"a"))
    assert wire.fetch(topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_unknown_partitions_are_answered_at_once(wire: Wire, topic: str) -> None:
    """An error does not wait for min.bytes."""
    response = wire.ask(fetch_request([(topic, 9, 0)], max_wait_ms=60_000), 12)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_leader_epochs_are_checked(wire: Wire, topic: str, epoch: int, code: int) -> None:
    """KIP-320: a client that knows a newer leader epoch must not be served by this one."""
    request = fetch_request([(topic, 0, 0)])
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert wire.ask(request, 12).responses[0].partitions[0].error_code == code


def test_an_older_leader_epoch_is_fenced(tmp_path: Path) -> None:
    """A restart elects anew; who still holds the old epoch must refresh its metadata."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        request = fetch_request([("t", 0, 0)])
        request.topics[0].partitions[0].current_leader_epoch = 0
        answer = wire.ask(request, 12).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_fetch_waits_for_min_bytes(node: BrokerServer, wire: Wire, topic: str) -> None:
    """Appends are counted together: only the one that completes the amount answers."""
    size = len(batch(b"x" * 100))
    wire.send(fetch_request([(topic, 0, 0)], max_wait_ms=60_000, min_bytes=3 * size), 12)
    with Wire(port_of(node)) as producer:
        for _ in range(3):
            producer.produce(topic, batch(b"x" * 100))
    _, response = wire.receive(FetchResponse, 12)
    assert offsets(response.responses[0].partitions[0]) == [0, 1, 2]


@pytest.mark.parametrize("enough", [1, 2])
def test_records_appended_between_turns_are_not_waited_for(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, enough: int
) -> None:
    """A record for the first partition, appended before the second has been looked at.

    Where it is not enough the fetch goes on waiting.
    """
    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", -1.0)
    read = fetch._Fetch._read_partition
    late = batch(b"late")

    def append_after(self: Any, partition: Partition, *args: Any, **more: Any) -> PartitionData:
        data = read(self, partition, *args, **more)
        if partition.tp.partition == 0 and partition.log.log_end_offset < enough:
            append = partial(partition.append_own, bytearray(late), now_ms=0)
            asyncio.get_running_loop().call_soon(append)
        return data

    monkeypatch.setattr(fetch._Fetch, "_read_partition", append_after)
    topic = f"in-turns-{enough}"
    wire.create_topic(topic, partitions=2)
    request = fetch_request(
        [(topic, 0, 0), (topic, 1, 0)],
        max_wait_ms=10_000_000,
        min_bytes=len(late) * enough,
    )
    response = wire.ask(request, 12)
    assert offsets(response.responses[0].partitions[0]) == [*range(enough)]


@pytest.mark.parametrize(
    ("version", "epoch", "expected"),
    [
        (10, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (12, 0, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_partition_that_is_given_up_while_others_have_their_turns_is_not_waited_for(
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    epoch: int,
    expected: ErrorCode,
    session_epoch: int,
) -> None:
    """The first one, before the second has been looked at: another broker leads it."""
    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", -1.0)
    read = fetch._Fetch._read_partition

    def given_up_after(self: Any, partition: Partition, *args: Any, **more: Any) -> PartitionData:
        data = read(self, partition, *args, **more)
        if partition.tp.partition == 0 and partition.is_leader:
            elsewhere = replace(partition.state, leader=5, leader_epoch=1)
            asyncio.get_running_loop().call_soon(partition.become, elsewhere)
        return data

    monkeypatch.setattr(fetch._Fetch, "_read_partition", given_up_after)
    topic = f"given-up-{version}-{session_epoch}"
    wire.create_topic(topic, partitions=2)
    request = fetch_request(
        [(topic, 0, 0), (topic, 1, 0)], max_wait_ms=10_000_000, session_epoch=session_epoch
    )
    for each in request.topics:
        each.partitions[0].current_leader_epoch = epoch
    response = wire.ask(request, version)
    assert response.responses[0].partitions[0].error_code == expected


@pytest.mark.parametrize("version", [4, 6, 7, 12])
def test_a_bug_while_reading_is_an_error_of_each_partition(
    wire: Wire, topic: str, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Of each partition where the response has no error of its own, or it would look empty."""

    def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(fetch._Fetch, "response", broken)
    response = wire.ask(fetch_request([(topic, 0, 0)], max_wait_ms=1), version)
    codes = {each.error_code for reported in response.responses for each in reported.partitions}
    assert codes | {response.error_code} - {0} == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_fetch_ends_at_its_max_wait(wire: Wire, topic: str) -> None:
    """With less than min.bytes there, the time limit answers with what there is."""
    wire.produce(topic, batch(b"a"))
    data = wire.fetch(topic, max_wait_ms=50, min_bytes=1 << 20)
    assert offsets(data) == [0]


def test_deleting_the_topic_answers_waiting_fetches(
    node: BrokerServer, wire: Wire, topic: str
) -> None:
    """Nobody waits for a partition that is gone."""
    from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest

    wire.send(fetch_request([(topic, 0, 0)], max_wait_ms=60_000), 12)
    with Wire(port_of(node)) as admin:
        admin.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
    _, response = wire.receive(FetchResponse, 12)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Incremental:
    """A client with a fetch session over some partitions of one topic."""

    def __init__(self, wire: Wire, topic: str, partitions: int) -> None:
        self.wire = wire
        self.topic = topic
        full = fetch_request([(topic, p, 0) for p in range(partitions)], session_epoch=0)
        self.session_id: int = wire.ask(full, 12).session_id
        self.epoch = 0

    def poll(
        self, offsets: dict[int, int] | None = None, forget: tuple[int, ...] = (), **more: int
    ) -> FetchResponse:
        """An incremental fetch; `offsets` are the partitions whose position changed."""
        self.epoch += 1
        wanted = [(self.topic, partition, at) for partition, at in (offsets or {}).items()]
        request = fetch_request(
            wanted, session_id=self.session_id, session_epoch=self.epoch, **more
        )
        if forget:
            request.forgotten_topics_data = [
                ForgottenTopic(topic=self.topic, partitions=list(forget))
            ]
        response: FetchResponse = self.wire.ask(request, 12)
        return response


@pytest.fixture
def session(wire: Wire, request: pytest.FixtureRequest) -> Incremental:
    """A session over the three partitions of a new topic."""
    name = f"s-{request.node.name[:60]}"
    wire.create_topic(name, partitions=3)
    return Incremental(wire, name, 3)


def answered(response: FetchResponse) -> list[int]:
    """The partitions a response speaks of."""
    return [entry.partition_index for topic in response.responses for entry in topic.partitions]


def test_a_session_returns_only_changed_partitions(session: Incremental) -> None:
    """KIP-227: quiet partitions do not travel, in neither direction."""
    assert session.session_id > 0
    assert answered(session.poll()) == []
    session.wire.produce(session.topic, batch(b"a"), partition=1)
    assert answered(session.poll()) == [1]
    assert answered(session.poll({1: 1})) == []


def test_a_partition_with_records_is_returned_until_read(session: Incremental) -> None:
    """A client that does not move on gets the same records again."""
    session.wire.produce(session.topic, batch(b"a"), partition=2)
    assert answered(session.poll()) == [2]
    assert answered(session.poll()) == [2]


def test_a_forgotten_partition_is_silent(session: Incremental) -> None:
    """Removed from the session, it is neither read nor waited for."""
    session.wire.produce(session.topic, batch(b"a"), partition=0)
    assert answered(session.poll(forget=(0,))) == []


def test_served_partitions_go_to_the_end(session: Incremental) -> None:
    """With room for one batch per response, three partitions are served in turn."""
    for partition in range(3):
        session.wire.produce(session.topic, batch(b"x" * 100), partition=partition)
    turns = []
    for _ in range(3):
        response = session.poll(max_bytes=1)
        turns += [
            entry.partition_index
            for topic in response.responses
            for entry in topic.partitions
            if offsets(entry)
        ]
    assert sorted(turns) == [0, 1, 2]


def test_a_wrong_session_epoch_is_a_top_level_error(session: Incremental) -> None:
    """The client opens a new session then."""
    session.epoch = 5
    response = session.poll()
    assert (response.error_code, response.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])


def by_id(topic_id: object, offset: int = 0) -> FetchRequest:
    """A version 13 request, which names topics by id."""
    entry = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        topics=[FetchTopic(topic_id=topic_id, partitions=[entry])],  # type: ignore[arg-type]
    )


def test_topics_by_id(node: BrokerServer, wire: Wire, topic: str) -> None:
    """From version 13 on a topic is its id: the answer bears it too."""
    wire.produce(topic, batch(b"a"))
    topic_id = node.broker.image.topics[topic].id
    for version in (13, 17):
        response = wire.ask(by_id(topic_id), version)
        assert response.responses[0].topic_id == topic_id
        assert offsets(response.responses[0].partitions[0]) == [0]


def test_an_unknown_topic_id(wire: Wire) -> None:
    """A deleted and recreated topic has another id: the old one must not read the new topic."""
    response = wire.ask(by_id(ZERO_UUID), 13)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.SNAPPY])
def test_old_clients_get_old_formats(
    node: BrokerServer, wire: Wire, codec: Codec, version: int, magic: int
) -> None:
    """What was written in format 2 is converted for clients that cannot read it."""
    topic = f"old-{version}-{codec.name}"
    wire.create_topic(topic)
    wire.produce(topic, batch(b"a", b"b", b"c", codec=codec))
    response: FetchResponse = wire.ask(fetch_request([(topic, 0, 0)]), version)
    found = messages(bytes(response.responses[0].partitions[0].records or b""))  # type: ignore[arg-type]
    assert [(m.offset, m.value, m.magic) for m in found] == [
        (0, b"a", magic),
        (1, b"b", magic),
        (2, b"c", magic),
    ]


@pytest.mark.parametrize("version", [1, 3])
def test_little_is_converted_at_a_time(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """An old client that asks for much gets some whole batches, the first however large it is."""
    monkeypatch.setattr(fetch, "CONVERSION_BYTES_MAX", 700)
    topic = f"bounded-{version}"
    wire.create_topic(topic)
    large = b"x" * 2000
    for value in (large, b"b", b"c" * 400, b"d" * 400, b"e"):
        wire.produce(topic, batch(value))
    found: list[list[int]] = []
    offset = 0
    while offset < 5:
        request = fetch_request([(topic, 0, offset)])
        response: FetchResponse = wire.ask(request, version)
        records = bytes(response.responses[0].partitions[0].records or b"")  # type: ignore[arg-type]
        found.append([message.offset for message in messages(records)])
        offset = found[-1][-1] + 1
    assert found == [[0], [1, 2], [3, 4]]


def test_conversion_can_be_switched_off(wire: Wire) -> None:
    """`message.downconversion.enable=false` spares the broker the work."""
    wire.create_topic("no-conversion", message_downconversion_enable="false")
    wire.produce("no-conversion", batch(b"a"))
    response: FetchResponse = wire.ask(fetch_request([("no-conversion", 0, 0)]), 3)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_zstd_needs_version_10(wire: Wire) -> None:
    """KIP-110: a client too old for zstd is told so instead of being sent what it cannot read."""
    wire.create_topic("zstd-only", compression_type="zstd")
    wire.produce("zstd-only", batch(b"a"))
    old: FetchResponse = wire.ask(fetch_request([("zstd-only", 0, 0)]), 9)
    assert old.responses[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert offsets(wire.fetch("zstd-only", version=10)) == [0]


def test_a_diverging_epoch_is_returned(node: BrokerServer, wire: Wire, topic: str) -> None:
    """KIP-595: a reader whose last epoch is unknown here learns where the logs part."""
    wire.produce(topic, batch(b"a", b"b"))
    request = fetch_request([(topic, 0, 5)], max_wait_ms=60_000)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    data = wire.ask(request, 12).responses[0].partitions[0]
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)


def test_an_epoch_without_a_leader_is_out_of_range(wire: Wire, topic: str) -> None:
    """Where the logs part cannot be told then."""
    wire.produce(topic, batch(b"a", b"b"))
    request = fetch_request([(topic, 0, 1)], max_wait_ms=60_000)
    request.topics[0].partitions[0].last_fetched_epoch = 7
    data = wire.ask(request, 12).responses[0].partitions[0]
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_aborted_transactions_are_null_unless_asked_for(wire: Wire, topic: str) -> None:
    """Null and none are not the same to a client: only readers of committed records get a list."""
    wire.produce(topic, batch(b"a"))
    request = fetch_request([(topic, 0, 0)])
    for level, reported in ((0, None), (1, [])):
        request.isolation_level = level
        assert wire.ask(request, 12).responses[0].partitions[0].aborted_transactions == reported


def test_waiting_fetches_of_many_clients(node: BrokerServer, topic: str) -> None:
    """One append answers everybody who waits for it."""
    answers: list[list[int]] = []

    def wait() -> None:
        with Wire(port_of(node)) as client:
            answers.append(offsets(client.fetch(topic, max_wait_ms=20_000)))

    threads = [Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    with Wire(port_of(node)) as producer:
        producer.produce(topic, batch(b"a"))
    for thread in threads:
        thread.join()
    assert answers == [[0]] * 8


def test_a_slice_in_flight_survives_its_file(tmp_path: Path) -> None:
    """Retention may delete a segment while it is being sent: the client gets what was promised.

    The client reads nothing at first, so that most of the response is still to be sent when the
    log start passes it and the file is unlinked.
    """
    value = bytes(range(256)) * 3600
    settings = {"log.retention.check.interval.ms": "10"}
    with (
        running_node(tmp_path, settings) as node,
        Wire(port_of(node)) as reader,
        Wire(port_of(node)) as admin,
    ):
        admin.create_topic(
            "t",
            retention_ms="-1",
            file_delete_delay_ms="0",
            segment_bytes=str(30 * len(batch(value))),
        )
        for _ in range(31):  # The last begins another segment: the active one would stay.
            admin.produce("t", batch(value))
        segment = tmp_path / "t-0" / f"{0:020}.log"
        reader.send(fetch_request([("t", 0, 0)], partition_max_bytes=1 << 25), 12)
        assert reader.socket.recv(4, MSG_PEEK)  # The response is on its way.
        everything = DeleteRecordsPartition(partition_index=0, offset=-1)
        admin.ask(
            DeleteRecordsRequest(
                timeout_ms=1000, topics=[DeleteRecordsTopic(name="t", partitions=[everything])]
            ),
            2,
        )
        while segment.exists():  # Bounded by the test's own time limit.
            admin.fetch("t", 31, max_wait_ms=10)
        _, response = reader.receive(FetchResponse, 12)
    (data,) = response.responses[0].partitions
    assert offsets(data) == list(range(30))
    assert bytes(data.records or b"").count(value) == 30  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [4, 12])
def test_answers_come_in_the_order_of_the_request(wire: Wire, topic: str, version: int) -> None:
    """Entries of a topic that stand apart stay apart; what does not exist comes last."""
    other = f"{topic}-other"
    wire.create_topic(other, partitions=2)
    asked = [(other, 0, 0), (topic, 0, 0), ("nowhere", 0, 0), (other, 1, 0), (other, 7, 0)]
    answer = wire.ask(fetch_request(asked), version)
    order = [
        (each.topic, [it.partition_index for it in each.partitions]) for each in answer.responses
    ]
    assert order == [(other, [0]), (topic, [0]), (other, [1]), ("nowhere", [0]), (other, [7])]


def test_neighbours_of_one_topic_come_together(wire: Wire, topic: str) -> None:
    """As clients ask for them, however many entries they make of it."""
    other = f"{topic}-other"
    wire.create_topic(other, partitions=2)
    answer = wire.ask(fetch_request([(other, 1, 0), (other, 0, 0), (topic, 0, 0)]), 12)
    order = [
        (each.topic, [it.partition_index for it in each.partitions]) for each in answer.responses
    ]
    assert order == [(other, [1, 0]), (topic, [0])]
