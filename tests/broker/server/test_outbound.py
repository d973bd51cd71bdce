"""The outbound queue, on a real socket pair."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas_broker.log.files import DataFile, FileSlice
from barnabas_broker.server.outbound import SENDFILE_BYTES_MIN, Item, Outbound


def run(story: Callable[[socket.socket, socket.socket], Awaitable[None]]) -> None:
    """Play a story on a connected pair of sockets, ours and the peer's."""

    async def play() -> None:
        ours, peer = socket.socketpair()
        with ours, peer:
            ours.setblocking(False)
            peer.setblocking(False)
            await story(ours, peer)

    asyncio.run(play())


async def receive(peer: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes from the peer's end."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    while len(received) < size:
        chunk = await loop.sock_recv(peer, 1 << 16)
        assert chunk, "the connection ended early"
        received += chunk
    return bytes(received)


def outbound(ours: socket.socket) -> tuple[Outbound, asyncio.Event, list[OSError]]:
    """A queue on our end, what tells that it drained, and what broke it."""
    drained, broken = asyncio.Event(), list[OSError]()
    queue = Outbound(
        asyncio.get_running_loop(),
        ours.fileno(),
        on_drained=drained.set,
        on_broken=broken.append,
    )
    return queue, drained, broken


def file_of(path: Path, size: int) -> tuple[DataFile, bytes]:
    """A data file with so many random bytes."""
    content = os.urandom(size)
    file = DataFile.create(path)
    file.append(content)
    return file, content


@pytest.mark.parametrize("size", [10, SENDFILE_BYTES_MIN - 1, SENDFILE_BYTES_MIN, 3_000_000])
def test_bytes_and_slices_arrive_in_order(tmp_path: Path, size: int) -> None:
    """Whatever way a slice takes to the kernel, the peer sees one ordered stream."""
    file, content = file_of(tmp_path / "segment", size)

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        items: list[Item] = [
            b"head",
            FileSlice(file, 0, size, 0),
            b"middle",
            FileSlice(file, size // 2, size - size // 2, 0),
            b"tail",
        ]
        expected = b"head" + content + b"middle" + content[size // 2 :] + b"tail"
        queue.send(items)
        assert await receive(peer, len(expected)) == expected
        if queue.waiting:
            await drained.wait()
        assert not broken
        queue.close()

    run(story)


def test_a_peer_that_does_not_read_makes_the_queue_wait() -> None:
    """Backpressure is visible at once, later sends queue up, and the order holds."""

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, _ = outbound(ours)
        first, second = os.urandom(4 << 20), os.urandom(100)
        queue.send([first])
        assert queue.waiting
        queue.send([second])
        assert await receive(peer, len(first) + len(second)) == first + second
        await drained.wait()
        assert not queue.waiting
        queue.close()

    run(story)


def test_a_truncated_slice_breaks_the_connection(tmp_path: Path) -> None:
    """Its length is announced already: other bytes in its place would corrupt the client."""
    file, _ = file_of(tmp_path / "segment", 1000)
    piece = FileSlice(file, 0, 1000, 0)
    file.truncate(500)

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        queue.send([piece])
        await asyncio.sleep(0)  # The failure is reported from the loop, not from within send.
        assert len(broken) == 1
        assert "truncated" in str(broken[0])
        queue.close()

    run(story)


def test_a_peer_that_has_gone_is_reported() -> None:
    """A reset connection is an ordinary event, told once, never an exception out of send."""

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        peer.close()
        queue.send([b"anybody there?"])
        await asyncio.sleep(0)
        assert len(broken) == 1
        queue.close()

    run(story)
