"""Lookups of the names of brokers: one that nobody answers for holds up no other."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from barnabas_broker.server.peers.host_resolver import HostResolver


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
