"""Long work beside the event loop."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log.validator import validate_produce
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network.shared import LAST_REQUESTS_S
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process.fair_queue import flow_of
from barnabas_broker.server.process.offload_pool import THREADS, FairPlace, OffloadPool
from barnabas_broker.server.requests.handlers import metadata, produce
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.batch import records
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.server.running import (
    Wire,
    pass_time,
    port_of,
    produce_request,
    running_node,
)
from tests.waiting import ANSWER, RUN, seconds, wait_for

SMALL = build_batch([(1000, None, b"small", ())])
LARGE = build_batch([(1000, None, bytes(20 << 20), ())], codec=Codec.ZSTD)


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Until set, the threads for long work are busy."""
    release = threading.Event()
    yield release
    release.set()


def occupy(node: BrokerServer, until: threading.Event) -> None:
    """Have every thread for long work wait."""
    begun = threading.Semaphore(0)

    def work() -> None:
        begun.release()
        until.wait(seconds(RUN))  # Longer than any wait for an answer.

    heavy = node.broker.heavy
    for _ in range(THREADS):
        heavy._threads.submit(work)
    heavy._coding.submit(work)
    for _ in range(THREADS + 1):
        assert begun.acquire(timeout=seconds(ANSWER))


def test_copies_of_waiting_requests_are_bounded() -> None:
    """One may always wait; others only where there is room, and are told to come again."""
    heavy = OffloadPool(waiting_bytes_max=100, least_bytes=10)
    flow, other = flow_of(ANONYMOUS, "10.0.0.1", 1), flow_of(ANONYMOUS, "10.0.0.2", 1)
    release = heavy.reserve(1000, flow)
    with pytest.raises(KafkaError) as refused:
        heavy.reserve(1, other)
    assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
    release(None)
    heavy.reserve(60, flow)
    with pytest.raises(KafkaError):  # Of an address that has most of the room already.
        heavy.reserve(30, flow)
    heavy.reserve(30, other)
    with pytest.raises(KafkaError):  # There is no room for however little.
        heavy.reserve(1, flow_of(ANONYMOUS, "10.0.0.3", 1))
    heavy.close()


BOMBS = 20
BOMB = build_batch([(1000, None, bytes(20 << 20), ())], codec=Codec.ZSTD)
HONEST = build_batch([(1000, None, os.urandom(800_000).hex().encode(), ())], codec=Codec.ZSTD)


def test_decompression_bombs_do_not_starve_other_requests_of_the_address(
    node: BrokerServer, topic: str, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind twenty bombs of the same address a large send is looked at after two of them."""
    looked_at: list[int] = []

    def look(data: bytearray, **how: Any) -> Any:
        if "at_once" not in how:
            looked_at.append(len(data))
        return validate_produce(data, **how)

    monkeypatch.setattr(produce, "validate_produce", look)
    occupy(node, held)
    heavy = node.broker.heavy
    with ExitStack() as stack:
        for _ in range(BOMBS):
            stack.enter_context(Wire(port_of(node))).send(produce_request(topic, BOMB), 9)
        wait_for("the bombs in line", lambda: heavy.in_line, until=lambda n: n == BOMBS - 1)
        honest = stack.enter_context(Wire(port_of(node)))
        honest.send(produce_request(topic, HONEST), 9)
        wait_for("all in line", lambda: heavy.in_line, until=lambda n: n == BOMBS)
        held.set()
        _, answer = honest.receive(ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert looked_at.index(len(HONEST)) <= 2


def test_metadata_does_not_wait_for_batches(
    node: BrokerServer,
    wire: Wire,
    topic: str,
    held: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large answer is encoded while the thread that decompresses is busy."""
    wire.create_topic("many", partitions=metadata.KEPT_PARTITIONS_MIN)
    monkeypatch.setattr(metadata, "ENCODED_AT_ONCE", 0)
    node.broker.heavy._threads.submit(held.wait, seconds(ANSWER))
    with Wire(port_of(node)) as bomber:
        bomber.send(produce_request(topic, BOMB), 9)
        answer = wire.ask(MetadataRequest(topics=None), 12)
    assert "many" in [each.name for each in answer.topics]
    assert not held.is_set()


def test_work_that_fails_or_is_not_waited_for() -> None:
    """An error goes to whoever waits, and what comes behind is done."""

    async def scenario() -> None:
        heavy = OffloadPool()
        flow = flow_of(ANONYMOUS, "10.0.0.1", 1)
        go_on = threading.Event()
        first = heavy.run(partial(go_on.wait, seconds(ANSWER)), flow=flow, cost=0)
        left = heavy.run(lambda: pytest.fail("done for nobody"), flow=flow, cost=1)
        failing = heavy.run(lambda: 1 // 0, flow=flow, cost=1)
        last = heavy.run(lambda: "done", flow=flow, cost=1)
        left.cancel()
        go_on.set()
        assert await first
        with pytest.raises(ZeroDivisionError):
            await failing
        assert await last == "done"
        heavy.close()

    asyncio.run(scenario())


def test_a_freed_place_skips_cancelled_waiters() -> None:
    """Who gave up, before or after it was given the place, keeps nobody from it."""

    async def scenario() -> None:
        place = FairPlace()
        flow = flow_of(ANONYMOUS, "10.0.0.1", 1)
        await place.take(flow, 1)
        waiting = [asyncio.ensure_future(place.take(flow, 1)) for _ in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        place.leave()
        waiting[1].cancel()
        await waiting[2]
        assert not waiting[3].done()
        place.leave()
        await waiting[3]
        place.leave()
        await place.take(flow, 1)

    asyncio.run(scenario())


def test_others_are_served_while_a_batch_is_decompressed(
    node: BrokerServer, topic: str, held: threading.Event
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


def test_a_cancelled_waiter_releases_its_memory(
    node: BrokerServer, topic: str, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room that the copy of its request took is given back, though the thread is busy still."""
    given_back = threading.Event()
    original = OffloadPool._release

    def release(self: OffloadPool, *what: Any) -> None:
        original(self, *what)
        given_back.set()

    monkeypatch.setattr(OffloadPool, "_release", release)
    occupy(node, held)
    with Wire(port_of(node)) as leaving:
        leaving.send(produce_request(topic, LARGE), 9)
    with Wire(port_of(node)) as other:
        assert other.produce(topic, SMALL).base_offset == 0
    pass_time(node, LAST_REQUESTS_S + 1)
    assert given_back.wait(seconds(ANSWER))
    assert node.broker.heavy.waiting_bytes == 0


def test_a_broker_stops_with_long_work_waiting(tmp_path: Path) -> None:
    """What has not begun is not begun any more."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        for _ in range(20):
            wire.send(produce_request("t", LARGE), 9)
