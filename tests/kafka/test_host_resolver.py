"""Lookups of hosts: one that hangs holds up no other."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from barnabas_kafka.host_resolver import HostResolver, connect_to_any
from tests.waiting import ANSWER, ATTEMPT_S, seconds


@contextmanager
def full_port() -> Iterator[int]:
    """A port of 127.0.0.1 to which no connection is made, as where packets are dropped."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port: int = full.getsockname()[1]
        for _ in range(2):  # No more connections fit into its queue: the next ones hang.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield port


def test_a_hanging_lookup_delays_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked for: each name has a thread of its own, and one at a time."""
    gone = threading.Event()
    lookups: list[str] = []

    def lookup(host: str, *_: object, **__: object) -> list[Any]:
        lookups.append(host)
        if host == "away.test":
            gone.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 0))]

    async def scenario() -> None:
        resolver = HostResolver()
        waiting = [asyncio.ensure_future(resolver.resolve("away.test")) for _ in range(100)]
        assert await resolver.resolve("here.test") == ("192.0.2.7",)
        assert await resolver.resolve("::1") == ("::1",)
        waiting.pop().cancel()
        gone.set()
        for each in waiting:
            with pytest.raises(OSError, match="nobody answers"):
                await each
        assert sorted(lookups) == ["away.test", "here.test"]
        assert await resolver.resolve("here.test") == ("192.0.2.7",)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    try:
        asyncio.run(scenario())
    finally:
        gone.set()


def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a host has an address of each family, and packets of one are dropped."""
    with ExitStack() as stack:
        port = stack.enter_context(full_port())
        server = stack.enter_context(socket.create_server(("127.0.0.2", port)))
        monkeypatch.setattr(HostResolver, "resolve_blocking", lambda *_: ("127.0.0.1", "127.0.0.2"))
        connection = HostResolver().connect_blocking("both.test", port, seconds(ATTEMPT_S))
        with stack.enter_context(connection):
            assert connection.getpeername() == server.getsockname()


def test_the_next_address_does_not_wait_for_the_timeout_of_the_first() -> None:
    """A broker is reached though packets to the first of its addresses are dropped."""

    async def scenario() -> None:
        with ExitStack() as stack:
            port = stack.enter_context(full_port())
            server = stack.enter_context(socket.create_server(("127.0.0.2", port)))
            connection = await connect_to_any(("127.0.0.1", "127.0.0.2"), port)
            with stack.enter_context(connection):
                assert connection.getpeername() == server.getsockname()
            server.close()
            with pytest.raises(ConnectionRefusedError):
                await connect_to_any(("127.0.0.2", "127.0.0.2"), port)

    asyncio.run(asyncio.wait_for(scenario(), seconds(ANSWER)))


def test_as_many_lookups_are_in_progress_as_the_resolver_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One more fails at once; one that has ended leaves its place."""
    answered = threading.Event()

    def hang(*_: object, **__: object) -> list[Any]:
        answered.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    async def scenario() -> None:
        resolver = HostResolver(2)
        waiting = [asyncio.ensure_future(resolver.resolve(f"{each}.test")) for each in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="2 host lookups are already in progress"):
            await resolver.resolve("one-more.test")
        answered.set()
        await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(OSError, match="no answer"):
            await resolver.resolve("one-more.test")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        asyncio.run(scenario())
    finally:
        answered.set()


def test_an_invalid_host_fails_as_an_absent_one() -> None:
    """Callers show an error in one line, whatever was typed."""
    with pytest.raises(OSError, match=r"a\.\.b is not a valid host name"):
        HostResolver().connect_blocking("a..b", 9092, seconds(ANSWER))
