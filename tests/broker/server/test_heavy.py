"""Long work beside the event loop."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.server.heavy import THREADS, HeavyWork
from barnabas_broker.server.node import Node
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.batch import records
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.server.running import Wire, port_of, produce_request, running_node
from tests.waiting import ANSWER, seconds

SMALL = build_batch([(1000, None, b"small", ())])
LARGE = build_batch([(1000, None, bytes(20 << 20), ())], codec=Codec.ZSTD)


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Until set, the threads for long work are busy."""
    release = threading.Event()
    yield release
    release.set()


def occupy(node: Node, until: threading.Event) -> None:
    """Have every thread for long work wait."""
    begun = threading.Semaphore(0)

    def work() -> None:
        begun.release()
        until.wait(seconds(ANSWER))

    for _ in range(THREADS):
        node.broker.heavy._threads.submit(work)
    for _ in range(THREADS):
        assert begun.acquire(timeout=seconds(ANSWER))


def test_copies_of_waiting_requests_are_bounded() -> None:
    """One may always wait; others only where there is room, and are told to come again."""
    heavy = HeavyWork(waiting_bytes_max=100)
    heavy.reserve(1000)
    with pytest.raises(KafkaError) as refused:
        heavy.reserve(1)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    heavy.release(1000)
    heavy.reserve(60)
    heavy.reserve(40)
    heavy.close()


def test_others_are_served_while_a_batch_is_decompressed(
    node: Node, topic: str, held: threading.Event
) -> None:
    """And the one who sent it gets his answer, with what he sends behind it in order."""
    occupy(node, held)
    with Wire(port_of(node)) as slow, Wire(port_of(node)) as other:
        slow.socket.sendall(
            slow.frame(produce_request(topic, LARGE), 9)
            + slow.frame(produce_request(topic, SMALL), 9)
        )
        assert other.produce(topic, SMALL).base_offset == 0
        held.set()
        answers = [slow.receive(ProduceResponse, 9) for _ in range(2)]
        assert [one.responses[0].partition_responses[0].base_offset for _, one in answers] == [1, 2]
        stored = bytes(other.fetch(topic, 1, partition_max_bytes=1 << 20).records or b"")  # type: ignore[arg-type]
        assert len(next(iter(records(stored)))[3] or b"") == 20 << 20


def test_who_leaves_while_waiting_leaves_nothing_behind(
    node: Node, topic: str, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room that the copy of his request took is given back."""
    given_back = threading.Event()
    original = HeavyWork.release

    def release(self: HeavyWork, size: int) -> None:
        original(self, size)
        given_back.set()

    monkeypatch.setattr(HeavyWork, "release", release)
    occupy(node, held)
    with Wire(port_of(node)) as leaving:
        leaving.send(produce_request(topic, LARGE), 9)
    with Wire(port_of(node)) as other:
        assert other.produce(topic, SMALL).base_offset == 0
    assert given_back.wait(seconds(ANSWER))
    assert node.broker.heavy.waiting_bytes == 0


def test_a_broker_stops_with_long_work_waiting(tmp_path: Path) -> None:
    """What has not begun is not begun any more."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        for _ in range(20):
            wire.send(produce_request("t", LARGE), 9)
