"""Small answers that leave behind each other."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network.response_coalescing import ANSWERS_MAX, ResponseCoalescer
from barnabas_broker.server.requests.dispatch import Caller
from tests.broker.server.sessions import Client, Sessions, serving

# What leaves together.


class Connection:
    """What a session does with a burst; one that is broken says so."""

    def __init__(self, number: int, sent: list[int]) -> None:
        self._number = number
        self._sent = sent

    def send_gathered(self) -> None:
        """Note it; the second breaks."""
        if self._number == 1:
            raise ZeroDivisionError("a bug")
        self._sent.append(self._number)


async def _pass() -> None:
    """Let the loop go round once."""
    await asyncio.sleep(0)


def test_answers_leave_in_order_at_the_end_of_a_pass() -> None:
    """However many passes of the loop there are, and whoever breaks: no other is kept from it."""

    async def scenario() -> tuple[list[int], list[object]]:
        complaints: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
        burst, sent = ResponseCoalescer(), list[int]()
        for number in range(4):
            burst.join(Connection(number, sent))
        assert not sent
        await _pass()
        await _pass()
        burst.join(Connection(4, sent))
        assert sent == [0, 2, 3]
        await _pass()
        return sent, complaints

    sent, complaints = asyncio.run(scenario())
    assert sent == [0, 2, 3, 4]
    assert [type(complaint) for complaint in complaints] == [ZeroDivisionError]


def test_a_full_burst_leaves_at_once() -> None:
    """Nobody waits for more than so many others."""

    async def scenario() -> None:
        burst, sent = ResponseCoalescer(), list[int]()
        for number in range(2, ANSWERS_MAX + 1):
            burst.join(Connection(number, sent))
        assert not sent
        burst.join(Connection(ANSWERS_MAX + 1, sent))
        assert sent == list(range(2, ANSWERS_MAX + 2))
        burst.join(Connection(0, sent))
        assert len(sent) == ANSWERS_MAX
        await _pass()
        assert sent[-1] == 0

    asyncio.run(scenario())


# The sessions of those that wait.

LARGE = 4 << 20


class Requests:
    """Answers with the request itself: a digit in a burst, a capital at once, "l" with much."""

    request_bytes_max = 1000

    def caller(self, listener: str, client_host: str) -> Caller:
        return Caller(listener, client_host, ANONYMOUS)

    def serve_run(self, received: memoryview, position: int, caller: Caller) -> None:
        """Nothing is served together."""

    def serve(self, frame: memoryview, caller: Caller) -> bytes | list[bytes]:
        request = bytes(frame)
        if request == b"l":
            return bytes(LARGE)
        return request if request.isdigit() else [request]


def play(scenario: Callable[[Sessions, Client], Awaitable[None]]) -> None:
    """Run a scenario of one client."""

    async def run() -> None:
        with serving(Requests()) as sessions:
            client = sessions.connect("a")
            client.transport.other.setblocking(False)
            await scenario(sessions, client)

    asyncio.run(run())


def received(client: Client) -> bytes:
    """What has been sent to a client since it was last asked."""
    got = b""
    while True:
        try:
            got += client.transport.other.recv(1 << 20)
        except BlockingIOError:
            return got


def test_an_answer_leaves_when_all_are_served() -> None:
    """Those of several connections, and what came on one of them meanwhile, in its order."""

    async def scenario(sessions: Sessions, a: Client) -> None:
        b = sessions.connect("b")
        b.transport.other.setblocking(False)
        a.send("1")
        b.send("2")
        a.send("3")
        assert received(a) == received(b) == b""
        await _pass()
        assert (received(a), received(b)) == (b"13", b"2")

    play(scenario)


@pytest.mark.parametrize("following", ["A", "AB", "23"])
def test_responses_are_sent_in_the_order_of_requests(following: str) -> None:
    """Responses leave in the order of the requests; nothing is sent twice."""

    async def scenario(sessions: Sessions, a: Client) -> None:
        a.send("1")
        a.send(following)
        assert received(a) == b"1" + following.encode()
        await _pass()
        assert received(a) == b""

    play(scenario)


def test_the_refused_have_their_answers_first() -> None:
    """The connection ends for the request that was wrong, not for those before it."""

    async def scenario(sessions: Sessions, a: Client) -> None:
        a.send("1")
        a.arrive((1001).to_bytes(4, "big"))
        assert a.transport.closed
        assert received(a) == b"1"

    play(scenario)


def test_nothing_is_sent_on_a_connection_that_has_ended() -> None:
    """Its descriptor may be somebody else's by then."""

    async def scenario(sessions: Sessions, a: Client) -> None:
        a.send("1")
        a.transport.abort()
        await _pass()
        assert received(a) == b""

    play(scenario)


def test_a_client_that_does_not_read_is_muted() -> None:
    """Until it has taken what waited."""

    async def scenario(sessions: Sessions, a: Client) -> None:
        a.send("l")
        await _pass()
        assert not a.transport.reading
        got = 0
        async with asyncio.timeout(60):
            while got < LARGE:
                got += len(received(a))
                await _pass()
        assert a.transport.reading
        assert sessions.shared.output.held == 0

    play(scenario)
