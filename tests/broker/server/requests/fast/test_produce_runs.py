"""Produce requests that came together: as one by one, but with one write."""

import asyncio
import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_broker.server.requests.fast import produce_runs
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.log.disk import Disk, using
from tests.broker.server.requests.fast.differential import NOW, Pair
from tests.broker.server.running import (
    Wire,
    port_of,
    produce_request,
    running_node,
    told_of_dispatchers,
)

BATCH = build_batch([(NOW, b"key", b"value", ())])
VERSION = 7
"""Of requests and responses that are read here; its responses have no header but their number."""


# Beside the handler.


def test_segments_roll_where_they_would_one_by_one(pair: Pair) -> None:
    """In the middle of what came together; "small" has segments of a thousand bytes."""
    answers = pair.ask(*[(produce_request("small", BATCH), 9)] * 60)
    assert len(answers) == 60
    pair.compare_logs()


def test_traffic_and_times_are_counted_for_each(pair: Pair) -> None:
    """Metrics do not tell how many came together."""
    pair.ask(*[(produce_request("plain", BATCH), 8)] * 20)
    short, general = (node.broker.replicas.traffic["plain"] for node in pair.nodes)
    assert [getattr(short, name) for name in short.__slots__] == [
        getattr(general, name) for name in general.__slots__
    ]
    ours, theirs = (node.broker.requests.of("Produce") for node in pair.nodes)
    assert ours.versions == theirs.versions
    assert ours.times.count == theirs.times.count


# What is served together.


@dataclass(frozen=True)
class Served:
    """A dispatcher that serves the topic "t" of three partitions."""

    node: BrokerServer
    dispatcher: Dispatcher
    disk: Disk

    def run(self, received: bytes) -> tuple[list[tuple[int, int]], int] | None:
        """(correlation id, base offset) of each answer, and where the rest begins."""
        caller = self.dispatcher.caller("PLAINTEXT", "127.0.0.1")
        served = self.dispatcher.serve_run(memoryview(bytearray(received)), 0, caller)
        if served is None:
            return None
        answers, position = served
        found = []
        while answers:
            size = int.from_bytes(answers[:4], "big")
            number = int.from_bytes(answers[4:8], "big")
            response, _ = codec.decode_from(ProduceResponse, answers[8 : 4 + size], VERSION, 0)
            answer = response.responses[0].partition_responses[0]
            assert answer.error_code == 0
            found.append((number, answer.base_offset))
            answers = answers[4 + size :]
        return found, position

    @property
    def writes(self) -> int:
        """How often the disk was written to, or a file cut."""
        return len(self.disk.effects)

    @property
    def end(self) -> int:
        """The end of partition 0."""
        return self.node.broker.replicas.led("t", 0).log.log_end_offset


Scenario = Callable[[Served], None]


def serving(directory: Path, scenario: Scenario, settings: dict[str, str] | None = None) -> None:
    """Run a scenario on the event loop of a broker."""

    async def play(disk: Disk) -> None:
        dispatchers: list[Dispatcher] = []
        with told_of_dispatchers(dispatchers.append):
            node = BrokerServer(
                BrokerSettings.from_mapping(
                    {
                        "listeners": "PLAINTEXT://127.0.0.1:0",
                        "log.dirs": str(directory),
                        "broker.id": "0",
                        **(settings or {}),
                    }
                )
            )
            await node.start()
        try:
            await asyncio.to_thread(_create_topic, port_of(node))
            scenario(Served(node, dispatchers[0], disk))
        finally:
            await node.stop()

    with using(Disk(directory)) as disk:
        asyncio.run(play(disk))


def _create_topic(port: int) -> None:
    with Wire(port) as wire:
        wire.create_topic("t", partitions=3)


def frame(number: int, request: ProduceRequest | None = None, *, version: int = VERSION) -> bytes:
    """A request, its size first; by default for partition 0 of the topic."""
    request = request or produce_request("t", BATCH, acks=1)
    header = RequestHeader(request.api_key, version, number, "client")
    body = encode_request_header(header) + codec.encode(request, version)
    return len(body).to_bytes(4, "big") + body


def frames(count: int) -> bytes:
    """Requests that are alike but for their numbers, from 1 on."""
    return b"".join(frame(number) for number in range(1, count + 1))


def test_a_run_is_one_write_and_an_answer_to_each(tmp_path: Path) -> None:
    """In their order, each with its own number and offset."""

    def scenario(served: Served) -> None:
        assert served.run(frames(1)) == ([(1, 0)], len(frames(1)))
        before = served.writes
        assert served.run(frames(5)) == ([(n, n) for n in range(1, 6)], len(frames(5)))
        assert served.writes == before + 1
        assert served.end == 6
        stored = served.node.broker.replicas.led("t", 0).log
        assert stored.high_watermark == 6

    serving(tmp_path, scenario)


def test_a_run_has_an_end(tmp_path: Path) -> None:
    """However many came: others are waiting."""

    def scenario(served: Served) -> None:
        served.run(frames(1))
        most = produce_runs.REQUESTS_MAX
        found = served.run(frames(most + 3))
        assert found is not None
        assert (len(found[0]), found[1]) == (most, len(frames(most)))

    serving(tmp_path, scenario)


SEQUENCED = build_batch([(NOW, b"k", b"v", ())], producer_id=1, producer_epoch=0, base_sequence=0)
TWO_PARTITIONS = ProduceRequest(
    acks=1,
    timeout_ms=1,
    topic_data=[
        TopicProduceData(
            name="t",
            partition_data=[PartitionProduceData(index=i, records=BATCH) for i in (0, 1)],
        )
    ],
)
OTHERS = {
    "another partition": frame(9, produce_request("t", BATCH, acks=1, partition=1)),
    "another topic": frame(9, produce_request("u", BATCH, acks=1)),
    "other acks": frame(9, produce_request("t", BATCH, acks=-1)),
    "no answer": frame(9, produce_request("t", BATCH, acks=0)),
    "another version": frame(9, version=8),
    "two partitions": frame(9, TWO_PARTITIONS),
    "a sequence": frame(9, produce_request("t", SEQUENCED, acks=1)),
    "compressed": frame(
        9, produce_request("t", build_batch([(NOW, b"k", b"v", ())], codec=Codec.LZ4), acks=1)
    ),
    "a wrong checksum": frame(
        9, produce_request("t", BATCH[:-1] + bytes((BATCH[-1] ^ 1,)), acks=1)
    ),
    "large": frame(9, produce_request("t", build_batch([(NOW, b"k", bytes(5000), ())]), acks=1)),
    "not whole": frame(9)[:-1],
    "only its size": frame(9)[:4],
    "too small": b"\0\0\0\1\0\0\0\1\0" + bytes(7),
    "an impossible size": b"\xff\xff\xff\xff" + frame(9)[4:],
    "cut inside": (len(frame(9)) - 14).to_bytes(4, "big") + frame(9)[4:],
    "another API": b"\0\0\0\x0a\0\x12" + bytes(8),
}


CUT_OFF = ("not whole", "only its size")


@pytest.mark.parametrize("kind", OTHERS)
def test_a_different_request_ends_the_run(tmp_path: Path, kind: str) -> None:
    """What was before it is served, and what is behind it too, beginning with it."""

    def scenario(served: Served) -> None:
        served.run(frames(1))
        other = OTHERS[kind] + (b"" if kind in CUT_OFF else frames(2))
        assert served.run(frames(3) + other) == ([(1, 1), (2, 2), (3, 3)], len(frames(3)))
        if kind not in ("another partition", "other acks", "another version"):
            assert served.run(other) is None
        assert served.node.broker.replicas.led("t", 0).log.health.writable

    serving(tmp_path, scenario)


def test_versions_that_are_not_served_are_not_served_together(tmp_path: Path) -> None:
    """The dispatcher has its answer to them."""

    def scenario(served: Served) -> None:
        served.run(frames(1))
        assert served.run(frame(1, version=13)[:-1] + b"\0" + frames(2)) is None
        assert served.end == 1

    serving(tmp_path, scenario)


def test_the_largest_request_is_a_setting_here_too(tmp_path: Path) -> None:
    """Behind a small one: the connection ends where it would one by one."""

    def scenario(served: Served) -> None:
        served.run(frames(1))
        large = frame(2, produce_request("t", build_batch([(NOW, b"k", bytes(900), ())]), acks=1))
        assert served.run(frames(1) + large) == ([(1, 1)], len(frames(1)))

    serving(tmp_path, scenario, {"socket.request.max.bytes": "800"})


# Where the log does not take it.


@pytest.mark.parametrize("short", [0, 100])
def test_a_full_disk_sends_them_one_by_one(tmp_path: Path, short: int) -> None:
    """Nothing of the run stays in the log, and the first of them may still find room."""

    def scenario(served: Served) -> None:
        served.run(frames(1))
        log = served.node.broker.replicas.led("t", 0).log
        size = log.size
        served.disk.fail("pwrite", errno.ENOSPC, path=".log", times=1, short=short)
        assert served.run(frames(4)) is None
        assert (served.end, log.size) == (1, size)
        assert (log.active.file.path).stat().st_size == size
        assert log.health.writable
        assert served.run(frames(4)) == ([(n, n) for n in range(1, 5)], len(frames(4)))

    serving(tmp_path, scenario)


def test_a_broken_disk_is_out_of_service(tmp_path: Path) -> None:
    """As for a single write that fails: everybody is told so, one by one."""

    def scenario(served: Served) -> None:
        served.run(frames(1))
        log = served.node.broker.replicas.led("t", 0).log
        served.disk.fail("pwrite", errno.EIO, path=".log", times=1)
        assert served.run(frames(4)) is None
        assert not log.health.readable
        assert log.log_end_offset == 1
        assert served.run(frames(4)) is None

    serving(tmp_path, scenario)


def test_a_run_that_cannot_be_looked_at_goes_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed before its append: each request meets the defect by itself."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    def scenario(served: Served) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ReplicaManager, "led", broken)
            assert served.run(frames(2)) is None

    serving(tmp_path, scenario)


@pytest.mark.parametrize("broken_at", ["led", "append_run"])
@pytest.mark.parametrize("version", [3, 9])
def test_a_bug_is_answered_to_each_request_and_logged(
    tmp_path: Path,
    version: int,
    broken_at: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The connection stays, and what may be appended is not appended again."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    owner = ReplicaManager if broken_at == "led" else Partition
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        with monkeypatch.context() as patch:
            patch.setattr(owner, broken_at, broken)
            asked = [wire.frame(produce_request("t", BATCH), version) for _ in "abc"]
            wire.socket.sendall(b"".join(asked))
            for frame in asked:
                correlation_id, response = wire.receive(ProduceResponse, version)
                assert correlation_id == int.from_bytes(frame[8:12], "big")
                (partition,) = response.responses[0].partition_responses
                assert partition.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        (partition,) = wire.ask(produce_request("t", BATCH), 9).responses[0].partition_responses
        assert (partition.error_code, partition.base_offset) == (0, 0)
        traffic = node.broker.replicas.traffic["t"]
        assert (traffic.produces, traffic.produces_failed) == (4, 3)
        assert traffic.bytes_rejected == 3 * len(BATCH)
    assert "Produce of " in caplog.text
    assert "a bug" in caplog.text


def test_a_bug_of_runs_alone_is_logged_and_all_go_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would notice that no run is made any more; a request that is refused is no bug."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    def offsets(wire: Wire) -> list[tuple[int, int]]:
        wire.socket.sendall(b"".join(wire.frame(produce_request("t", BATCH), 9) for _ in "ab"))
        answers = [wire.receive(ProduceResponse, 9)[1].responses[0] for _ in "ab"]
        parts = [answer.partition_responses[0] for answer in answers]
        return [(part.error_code, part.base_offset) for part in parts]

    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with Wire(port_of(node)) as refused:
            assert offsets(refused) == [(unknown, -1), (unknown, -1)]
        assert not caplog.text
        wire.create_topic("t")
        monkeypatch.setattr(produce_runs, "plain_batch", broken)
        assert offsets(wire) == [(0, 0), (0, 1)]
    assert "Gathering requests of a Produce run failed" in caplog.text
    assert "a bug" in caplog.text
