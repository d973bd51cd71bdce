"""Lookups of the names of brokers: one that nobody answers for holds up no other."""

import asyncio
import socket
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from barnabas_broker.server.peers.host_resolver import HostResolver
from tests.waiting import ANSWER, ATTEMPT_S, seconds


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
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port: int = full.getsockname()[1]
        for _ in range(2):  # No more connections fit into its queue: the next ones hang.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        server = stack.enter_context(socket.create_server(("127.0.0.2", port)))
        monkeypatch.setattr(HostResolver, "resolve_blocking", lambda *_: ("127.0.0.1", "127.0.0.2"))
        connection = HostResolver().connect_blocking("both.test", port, seconds(ATTEMPT_S))
        with stack.enter_context(connection):
            assert connection.getpeername() == server.getsockname()


def test_an_invalid_host_fails_as_an_absent_one() -> None:
    """Callers show an error in one line, whatever was typed."""
    with pytest.raises(OSError, match=r"a\.\.b is not a valid host name"):
        HostResolver().connect_blocking("a..b", 9092, seconds(ANSWER))
