"""Waiting for slow sockets, on real ones."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack

import pytest

from barnabas_broker.server.transport.write_readiness import EVENTS_AT_ONCE, WriteReadiness

MANY = 3 * EVENTS_AT_ONCE


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """Connected sockets, ours and the peers', of which ours take nothing more."""
    with ExitStack() as stack:
        found = []
        for _ in range(MANY):
            ours, peer = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(peer)
            ours.setblocking(False)
            peer.setblocking(False)
            _fill(ours)
            found.append((ours, peer))
        yield found


def _fill(ours: socket.socket) -> None:
    try:
        while True:
            ours.send(bytes(1 << 16))
    except BlockingIOError:
        return


def _drain(peer: socket.socket) -> None:
    try:
        while True:
            peer.recv(1 << 20)
    except BlockingIOError:
        return


def run(scenario: Callable[[WriteReadiness], Awaitable[None]]) -> None:
    """Run a scenario with waits that are closed at its end."""

    async def play() -> None:
        writability = WriteReadiness()
        try:
            await scenario(writability)
        finally:
            writability.close()

    asyncio.run(play())


async def some_rounds() -> None:
    """Let the loop look at its descriptors a few times."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_each_waiter_is_notified_once(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """When the peer has read, and again only for who asks again."""
    ours, peer = pairs[0]

    async def scenario(writability: WriteReadiness) -> None:
        notified = asyncio.Queue[int]()
        writability.wait(ours.fileno(), lambda: notified.put_nowait(1))
        await some_rounds()
        assert notified.empty()
        _drain(peer)
        assert await notified.get() == 1
        await some_rounds()
        assert notified.empty()
        writability.wait(ours.fileno(), lambda: notified.put_nowait(2))
        assert await notified.get() == 2

    run(scenario)


def test_a_broken_connection_notifies_the_waiter(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    """Who waits then learns what is wrong from its next send."""
    ours, peer = pairs[0]

    async def scenario(writability: WriteReadiness) -> None:
        notified = asyncio.Event()
        writability.wait(ours.fileno(), notified.set)
        peer.close()
        await notified.wait()

    run(scenario)


def test_a_forgotten_socket_is_not_notified(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    """Even by one that was told in the same round; forgetting again, or too early, is fine."""
    fds = [ours.fileno() for ours, _ in pairs[:4]]

    async def scenario(writability: WriteReadiness) -> None:
        notified: list[int] = []

        def tell(fd: int) -> None:
            notified.append(fd)
            for other in fds:
                writability.forget(other)

        writability.forget(fds[0])
        for fd in fds:
            writability.wait(fd, lambda fd=fd: tell(fd))  # type: ignore[misc]
        for _, peer in pairs[:4]:
            _drain(peer)
        await some_rounds()
        assert len(notified) == 1

    run(scenario)


def test_many_leave_the_loop_to_others(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """Only a few are told before everything else has its turn; all are in the end."""

    async def scenario(writability: WriteReadiness) -> None:
        notified: list[int] = []
        for ours, peer in pairs:
            _drain(peer)
            writability.wait(ours.fileno(), lambda: notified.append(0))
        before = 0
        while len(notified) < MANY:
            await asyncio.sleep(0)
            assert len(notified) - before <= EVENTS_AT_ONCE
            before = len(notified)

    run(scenario)


def test_a_stop_ends_all_waits(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """Connections that end after it are no trouble."""
    ours, peer = pairs[0]

    async def scenario(writability: WriteReadiness) -> None:
        notified: list[int] = []
        writability.wait(ours.fileno(), lambda: notified.append(0))
        writability.close()
        _drain(peer)
        writability.wait(ours.fileno(), lambda: notified.append(0))
        await some_rounds()
        writability.forget(ours.fileno())
        assert not notified

    run(scenario)
