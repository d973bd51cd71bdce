"""The outbound queue, on a real socket pair."""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log.files import DataFile, FileSlice
from barnabas_broker.server import cold_reads
from barnabas_broker.server import outbound as outbound_module
from barnabas_broker.server.outbound import SENDFILE_BYTES_MIN, Item, Outbound
from barnabas_broker.server.writability import Writability
from tests.broker.server import page_cache


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
        Writability(),
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


@pytest.fixture
def no_reading_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cold stays so until it is brought in: asking for it starts no reading of it."""
    monkeypatch.setattr(cold_reads, "in_memory", page_cache.in_memory)
    monkeypatch.setattr(cold_reads, "read_in_memory", page_cache.read_in_memory)


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


def test_a_peer_that_takes_everything_has_turns_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many bytes the loop goes on with others, though the socket would take more."""
    monkeypatch.setattr(outbound_module, "TURN_BYTES", SENDFILE_BYTES_MIN)
    size = SENDFILE_BYTES_MIN
    file, content = file_of(tmp_path / "segment", 3 * size)

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send([FileSlice(file, start, size, 0) for start in range(0, 3 * size, size)])
        assert queue.waiting
        assert await receive(peer, size) == content[:size]
        assert await receive(peer, 2 * size) == content[size:]
        await drained.wait()
        assert not broken
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


def test_more_pieces_than_one_send_may_carry(tmp_path: Path) -> None:
    """The kernel takes 1,024 pieces at a time, and fewer bytes than that when the peer is slow."""
    file, content = file_of(tmp_path / "segment", 4000)
    items: list[Item] = []
    expected = bytearray()
    for number in range(2500):
        head = number.to_bytes(4, "big") * 50
        items += [head, FileSlice(file, number, 1500, 0)]
        expected += head + content[number : number + 1500]

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send(items)
        assert queue.waiting
        assert await receive(peer, len(expected)) == expected
        await drained.wait()
        assert not broken
        queue.close()

    run(story)


@pytest.mark.usefixtures("no_reading_ahead")
@pytest.mark.parametrize("size", [5000, SENDFILE_BYTES_MIN, 3_000_000])
def test_cold_slices_are_read_by_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """What left the page cache is sent in its place, and the event loop reads none of it."""
    file, content = file_of(tmp_path / "segment", 2 * size)
    page_cache.evict(file)
    readers, go_on = [], threading.Event()

    def bring_in(*where: Any) -> None:
        readers.append(threading.current_thread())
        assert go_on.wait(60)
        real(*where)

    real = cold_reads.bring_in
    monkeypatch.setattr(cold_reads, "bring_in", bring_in)

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send([b"head", FileSlice(file, 0, size, 0), FileSlice(file, size, size, 0), b"tail"])
        assert queue.waiting
        assert await receive(peer, 4) == b"head"
        with pytest.raises(BlockingIOError):
            peer.recv(1)
        go_on.set()
        expected = content + b"tail"
        assert await receive(peer, len(expected)) == expected
        if queue.waiting:
            await drained.wait()
        assert not broken
        queue.close()

    run(story)
    assert readers
    assert threading.main_thread() not in readers


@pytest.mark.usefixtures("no_reading_ahead")
def test_a_client_that_left_is_not_read_for(tmp_path: Path) -> None:
    """Closing during a cold read sends nothing more and reports nothing."""
    file, _ = file_of(tmp_path / "segment", 3_000_000)
    page_cache.evict(file)

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send([b"head", FileSlice(file, 0, 3_000_000, 0)])
        queue.close()
        await asyncio.get_running_loop().run_in_executor(cold_reads.THREADS, int)
        await asyncio.sleep(0)
        assert not drained.is_set()
        assert not broken
        assert peer.recv(100) == b"head"
        with pytest.raises(BlockingIOError):
            peer.recv(100)

    run(story)


@pytest.mark.usefixtures("no_reading_ahead")
def test_a_disk_that_fails_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a thread meets is told as if the loop had met it."""
    file, _ = file_of(tmp_path / "segment", 100_000)
    page_cache.evict(file)

    def bring_in(*_: object) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(cold_reads, "bring_in", bring_in)

    async def story(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        told = asyncio.Event()

        def on_broken(error: OSError) -> None:
            broken.append(error)
            told.set()

        queue._on_broken = on_broken
        queue.send([FileSlice(file, 0, 100_000, 0)])
        await told.wait()
        assert broken[0].errno == errno.EIO
        queue.close()

    run(story)
