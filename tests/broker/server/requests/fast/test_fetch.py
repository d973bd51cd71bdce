"""The short way of Fetch and the general one: the same answers to the same requests."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas_broker.server.requests.dispatch import Dispatcher, PlainWay
from barnabas_broker.server.requests.fast import fetch
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import (
    Wire,
    fetch_request,
    port_of,
    running_node,
    told_of_dispatchers,
)
from tests.broker.server.transactional import Transactional

BATCHES = 5
BATCH = build_batch([(0, None, bytes(50), ()) for _ in range(10)])
TOPICS = ("plain", "aborted", "nowhere")


@dataclass(slots=True)
class Ways:
    """One broker whose short way can be closed, and counts who goes it."""

    wire: Wire
    dispatcher: Dispatcher
    short: fetch.PlainFetches
    went: int = 0

    def ask(self, request: FetchRequest, version: int) -> bytes:
        """Send a request twice; the answer, which is the same both ways but for its number."""
        answers = []
        ways: tuple[PlainWay, PlainWay] = (self._short, lambda *_: None)
        for serve in ways:
            self.dispatcher._plain[ApiKey.FETCH] = serve
            self.wire.send(request, version)
            answers.append(self.wire.receive_frame())
        assert answers[0][4:] == answers[1][4:]
        return answers[0]

    def _short(self, *asked: Any) -> list[Item] | None:
        served = self.short.serve(*asked)
        self.went += served is not None
        return served


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """A broker with some records, an aborted transaction and an empty partition."""
    dispatchers: list[Dispatcher] = []
    with ExitStack() as stack, told_of_dispatchers(dispatchers.append):
        directory: Path = tmp_path_factory.mktemp("ways")
        node = stack.enter_context(running_node(directory))
        wire = stack.enter_context(Wire(port_of(node)))
        wire.create_topic("plain", partitions=3)
        wire.create_topic("aborted")
        for _ in range(BATCHES):
            for partition in (0, 1):
                wire.produce("plain", BATCH, partition=partition)
        producer = Transactional(wire, "transactional")
        producer.init()
        producer.add("aborted", 0)
        producer.produce("aborted", b"value")
        producer.end(commit=False)
        # Answered when the marker is there.
        assert wire.fetch("aborted", isolation_level=1, max_wait_ms=20_000).aborted_transactions
        (dispatcher,) = dispatchers
        short = dispatcher._plain[ApiKey.FETCH].__self__  # type: ignore[attr-defined]
        yield Ways(wire, dispatcher, short)


def _request(ways: Ways, version: int, names: list[str], **more: object) -> FetchRequest:
    """A request for the first partition of each topic, by id where the version has ids."""
    ids = ways.short._broker.image.topics
    request = fetch_request([(name, 0, 0) for name in names], **more)
    for topic in request.topics:
        topic.topic_id = ids[topic.topic].id if topic.topic in ids else ZERO_UUID
    return request


@st.composite
def _topics(draw: st.DrawFn) -> list[tuple[str, list[FetchPartition]]]:
    names = draw(st.lists(st.sampled_from(TOPICS + ("plain",) * 3), min_size=1, max_size=2))
    partitions = st.builds(
        FetchPartition,
        partition=st.sampled_from((0, 0, 1, 1, 2, 3)),
        current_leader_epoch=st.sampled_from((-1, -1, -1, 0, 0, 1)),
        fetch_offset=st.integers(-1, 10 * BATCHES + 1),
        last_fetched_epoch=st.sampled_from((-1, -1, -1, 0)),
        partition_max_bytes=st.sampled_from((0, 100, 1500, 10_000, 1 << 20)),
    )
    return [(name, draw(st.lists(partitions, min_size=1, max_size=3))) for name in names]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    topics=_topics(),
    version=st.integers(4, 17),
    min_bytes=st.sampled_from((0, 1, 1, 1, 2000, 1 << 20)),
    max_bytes=st.sampled_from((-1, 0, 100, 2000, 1 << 20)),
    max_wait_ms=st.integers(0, 1),
    isolation_level=st.integers(0, 1),
)
def test_random_requests_get_the_same_answer(
    ways: Ways,
    topics: list[tuple[str, list[FetchPartition]]],
    version: int,
    **limits: Any,
) -> None:
    """Whatever is asked of whichever partitions, in every version that clients still send."""
    if version < 12:
        for _, partitions in topics:
            for wanted in partitions:
                wanted.last_fetched_epoch = -1
    request = FetchRequest(session_epoch=-1, **limits)
    ids = ways.short._broker.image.topics
    for name, partitions in topics:
        topic_id = ids[name].id if name in ids else ZERO_UUID
        request.topics.append(FetchTopic(topic=name, topic_id=topic_id, partitions=partitions))
    ways.ask(request, version)


@pytest.mark.parametrize("version", [10, 11, 12, 13, 17])
def test_ordinary_requests_go_the_short_way(ways: Ways, version: int) -> None:
    """Else it would be slow without anybody noticing."""
    before = ways.went
    for isolation_level in (0, 1):
        request = _request(ways, version, ["plain"], isolation_level=isolation_level)
        assert BATCH[20:] in ways.ask(request, version)
    assert ways.went == before + 2


@pytest.mark.parametrize("version", [9, 11, 17])
def test_what_is_not_ordinary_goes_the_general_way(ways: Ways, version: int) -> None:
    """Old versions, unknown topics, aborted transactions and too little to answer with."""
    before = ways.went
    ways.ask(_request(ways, version, ["nowhere"]), version)
    ways.ask(_request(ways, version, ["aborted"], isolation_level=1), version)
    ways.ask(_request(ways, version, ["plain"], min_bytes=1 << 20, max_wait_ms=1), version)
    assert ways.went == before
    ways.ask(_request(ways, version, ["aborted"]), version)
    assert ways.went == before + (version > 9)


def test_both_ways_count_the_same(ways: Ways) -> None:
    """Metrics do not depend on the way a request took."""
    traffic = ways.short._broker.replicas.traffic["plain"]
    fetches, bytes_out = traffic.fetches, traffic.bytes_out
    ways.ask(_request(ways, 11, ["plain"]), 11)
    assert traffic.fetches == fetches + 2
    assert traffic.bytes_out == bytes_out + 2 * BATCHES * len(BATCH)


def test_a_bug_is_not_the_clients_trouble(
    ways: Ways, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the short way stumbles over is logged, and served the general way."""

    def stumble(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(fetch, "answer", stumble)
    assert BATCH[20:] in ways.ask(_request(ways, 11, ["plain"]), 11)
    assert "ZeroDivisionError" in caplog.text
