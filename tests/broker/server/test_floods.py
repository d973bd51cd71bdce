"""Who sends more than one turn serves, beside others: in which order requests are served.

The sessions are the product's; the transport, the requests' handler and the clock are the test's,
so that one request is one turn and the order is certain.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network import network_receive, session
from barnabas_broker.server.network.long_requests import ITERATION_LONG_S
from barnabas_broker.server.network.shared import FLOOD_READ_BYTES, Shared
from barnabas_broker.server.requests.api_metrics import RequestMetrics
from barnabas_broker.server.requests.dispatch import Caller, Reply
from barnabas_broker.server.requests.pending_responses import Answers, PendingResponse
from tests.broker.server.sessions import Client, frames, serving


class Requests:
    """Stands for the dispatcher: writes down what is served, which takes all of a turn."""

    request_bytes_max = 1000

    def __init__(self) -> None:
        self.now = 0.0
        self.turn_s = session.TIME_SLICE_S
        self.served: list[str] = []
        self.tried = 0
        self.answer: bytes | None = None
        self.together = False
        self.parked: dict[str, PendingResponse] = {}

    def caller(self, listener: str, client_host: str) -> Caller:
        return Caller(listener, client_host, ANONYMOUS)

    def serve_run(
        self, received: memoryview, position: int, caller: Caller
    ) -> tuple[bytes, int] | None:
        """Nothing is served together, unless all is."""
        self.tried += 1
        return (b"", len(received)) if self.together else None

    def serve(self, frame: memoryview, caller: Caller) -> bytes | PendingResponse | None:
        self.now += self.turn_s
        number = bytes(frame).decode()
        self.served.append(caller.client_host + number)
        return self.parked.get(number, self.answer)


class Waiting(PendingResponse):
    """A request that waits until a scenario answers it."""

    metrics = RequestMetrics().of("Test")
    began_ns = 0

    def encoded(self) -> bytes:
        return b"answer"


@dataclass(frozen=True)
class Server:
    """The server of a scenario."""

    requests: Requests
    shared: Shared

    async def settle(self) -> list[str]:
        """Let the loop go round until nobody waits for a turn; what was served meanwhile."""
        before = len(self.requests.served)
        for _ in range(250):
            await asyncio.sleep(0)
        shared = self.shared
        assert not any(each._waiting for each in (shared.run_queue, shared.receiving))
        assert not shared.serving
        return self.requests.served[before:]


Scenario = Callable[[Server, Client, Client], Awaitable[None]]


def play(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a scenario of two clients, `a` and `b`."""

    async def run() -> None:
        requests = Requests()
        monkeypatch.setattr(session, "monotonic", lambda: requests.now)
        with serving(requests) as sessions:
            clients = [sessions.connect(name) for name in "ab"]
            await scenario(Server(requests, sessions.shared), *clients)

    asyncio.run(run())


def test_the_next_flood_queues_behind_waiting_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has flooded has no turn at once when more of it comes, but one in line."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        a.send("123")
        assert server.requests.served == ["a1"]
        assert await server.settle() == ["a2", "a3"]
        b.send("123")
        assert server.requests.served[3:] == ["b1"]
        a.send("456")
        assert server.requests.served[4:] == []
        assert not a.transport.reading
        assert await server.settle() == ["b2", "a4", "b3", "a5", "a6"]
        assert a.transport.reading

    play(scenario, monkeypatch)


def test_a_connection_that_stops_flooding_is_served_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one turn serves is no flood; the read after it is as anybody's."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.send("3")
        assert server.requests.served == ["a1", "a2"]
        assert await server.settle() == ["a3"]
        a.send("4")
        assert server.requests.served[3:] == ["a4"]
        assert await server.settle() == []

    play(scenario, monkeypatch)


def test_the_rest_of_a_request_is_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood is cut anywhere: the rest of one request is received alone, and served at once."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        a.send("123", left_out=1)
        assert await server.settle() == ["a2"]
        assert len(a.session.get_buffer(-1)) == 1
        a.arrive(b"3")
        assert server.requests.served[2:] == ["a3"]
        assert len(a.session.get_buffer(-1)) == FLOOD_READ_BYTES
        a.send("45")
        assert server.requests.served[3:] == []
        assert await server.settle() == ["a4", "a5"]

    play(scenario, monkeypatch)


def test_a_piece_behind_what_waits_for_its_answer_waits_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flood whose last request waits for others of its group: answers stay in their order."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        waiting = server.requests.parked["3"] = Waiting(Answers(), 0, 0)
        a.send("123")
        assert await server.settle() == ["a2", "a3"]
        a.send("4", left_out=1)
        assert not a.transport.reading
        a.session.answer(waiting)
        assert a.transport.reading
        a.arrive(b"4")
        assert server.requests.served[3:] == ["a4"]

    play(scenario, monkeypatch)


def test_a_piece_of_a_request_waits_for_the_rest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to serve, and no turn to wait for."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.send("3", left_out=1)
        assert a.transport.reading
        assert await server.settle() == []
        a.arrive(b"3")
        assert server.requests.served == ["a1", "a2", "a3"]

    play(scenario, monkeypatch)


def test_an_impossible_size_ends_the_connection_in_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After what was sound before it."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.arrive(frames("3") + (1001).to_bytes(4, "big"))
        assert await server.settle() == ["a3"]
        assert a.transport.closed
        a.session.connection_lost(None)

    play(scenario, monkeypatch)


def test_a_closed_connection_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """And who stands behind it is served."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        a.send("12")
        await server.settle()
        a.send("345")
        b.send("12")
        a.transport.abort()
        a.session.connection_lost(None)
        assert await server.settle() == ["b2"]

    play(scenario, monkeypatch)


def test_requests_that_cannot_be_combined_are_seldom_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """To try costs something, and what a client sends seldom changes in kind."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        server.requests.turn_s = 0
        a.send("1" * (session.APART_REQUESTS + 2))
        assert server.requests.tried == 1
        a.send("1")
        assert server.requests.tried == 1
        a.send("11")
        assert server.requests.tried == 2
        b.send("11")
        assert server.requests.tried == 3

    play(scenario, monkeypatch)


def test_a_long_request_waits_where_its_round_was_spent_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the second on, as the first shows that it is long; who is short never waits."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        monkeypatch.setattr(session, "clock_for", lambda _: lambda: server.requests.now)
        server.requests.turn_s = ITERATION_LONG_S
        a.send("1")
        await server.settle()
        b.send("1")
        assert server.requests.served == ["a1", "b1"]
        a.send("2", left_out=1)
        assert a.transport.reading
        a.arrive(b"2")  # However it is cut.
        assert server.requests.served[2:] == []
        assert not a.transport.reading
        server.requests.turn_s = 0
        assert await server.settle() == ["a2"]
        assert a.transport.reading
        server.requests.turn_s = ITERATION_LONG_S
        b.send("2")
        a.send("3")
        assert server.requests.served[3:] == ["b2", "a3"]
        await server.settle()

    play(scenario, monkeypatch)


@pytest.mark.parametrize("together", [False, True])
def test_short_requests_after_a_long_one_are_scheduled_as_short(
    monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    """A member joins a large group, and sends heartbeats from then on; or a producer, batches."""

    async def scenario(server: Server, a: Client, b: Client) -> None:
        monkeypatch.setattr(session, "clock_for", lambda _: lambda: server.requests.now)
        for client in (a, b):
            server.requests.turn_s = ITERATION_LONG_S
            client.send("1")
            await server.settle()
        server.requests.turn_s = 0
        server.requests.answer = b"short"
        server.requests.together = together
        for _ in range(20):
            a.send("22")
            await server.settle()
        server.requests.turn_s, server.requests.answer = ITERATION_LONG_S, None
        b.send("2")
        server.requests.turn_s = 0
        served = len(server.requests.served)
        a.send("3")
        assert server.requests.served[served:] == ["a3"]
        await server.settle()

    play(scenario, monkeypatch)


def test_a_tenth_of_a_millisecond_does_not_wait_for_all_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred connections of one address send what takes a millisecond; a fetch goes between."""

    async def run() -> None:
        requests = Requests()
        monkeypatch.setattr(session, "clock_for", lambda _: lambda: requests.now)
        with serving(requests) as sessions:
            server = Server(requests, sessions.shared)
            canary, *attackers = [sessions.connect("x") for _ in range(101)]
            for request in "12":
                requests.turn_s = ITERATION_LONG_S / 10
                canary.send(request)
                requests.turn_s = ITERATION_LONG_S
                for each in attackers:
                    each.send(request)
                await server.settle()
            for each in attackers:
                each.send("3")
            requests.turn_s = ITERATION_LONG_S / 10
            served = len(requests.served)
            canary.send("4")
            requests.turn_s = ITERATION_LONG_S
            assert requests.served[served:] == []
            for _ in range(4):
                await asyncio.sleep(0)
            assert "x4" in requests.served[served:]
            assert len(sessions.shared.serving) > 90
            await server.settle()
            assert requests.served[served:].count("x3") == 99

    asyncio.run(run())


def test_a_cancelled_response_closes_its_connection() -> None:
    """Its client would wait for an answer that nobody will give, and so would all behind it."""

    async def run() -> None:
        requests = Requests()
        with serving(requests) as sessions:
            client = sessions.connect("a")
            future = asyncio.get_running_loop().create_future()
            call = cast(Any, SimpleNamespace(hurry=None))
            reply = Reply(cast(Any, None), call, 0, future, client.session.caller)
            client.session._wait_for(reply)
            future.cancel()
            await asyncio.sleep(0)
            assert client.transport.is_closing()

    asyncio.run(run())


def test_large_requests_are_received_and_served_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round receives so much of all of them together, and serves one of them."""
    for module in (session, network_receive):
        monkeypatch.setattr(module, "LARGE_REQUEST_BYTES", 100)
        monkeypatch.setattr(module, "UNBUDGETED_BYTES", 10)
    monkeypatch.setattr(network_receive, "RECEIVED_AT_ONCE", 400)
    size = 900
    head = size.to_bytes(4, "big")

    async def scenario(server: Server, a: Client, b: Client) -> None:
        server.shared.iteration_bytes._budget = 500
        for client in (a, b):
            client.arrive(head + b"-" * 96)
        assert len(a.session.get_buffer(-1)) == 400
        a.arrive(b"-" * 400)
        assert len(a.session.get_buffer(-1)) == 10
        assert not a.transport.reading
        b.arrive(b"-" * 10)
        assert not b.transport.reading
        await server.settle()
        for client, left in ((a, 403), (b, 793)):
            while left:
                assert client.transport.reading
                arriving = min(left, len(client.session.get_buffer(-1)))
                client.arrive(b"-" * arriving)
                left -= arriving
                await server.settle()
        for client in (a, b):
            client.arrive(b"-")
        assert server.requests.served == []
        await server.settle()
        assert [each[0] for each in server.requests.served] == ["a", "b"]

    play(scenario, monkeypatch)
