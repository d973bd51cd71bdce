"""The outbound queue, on a real socket pair."""

import asyncio
import errno
import os
import socket
import threading
import weakref
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.log.files import DataFile, FileSlice
from barnabas_broker.server.transport import cold_reads
from barnabas_broker.server.transport import outbound as outbound_module
from barnabas_broker.server.transport.outbound import (
    RUN_BYTES_MAX,
    SENDFILE_BYTES_MIN,
    Item,
    Outbound,
)
from barnabas_broker.server.transport.write_readiness import WriteReadiness
from tests.broker.server import page_cache
from tests.waiting import ANSWER, seconds


def run(scenario: Callable[[socket.socket, socket.socket], Awaitable[None]]) -> None:
    """Run a scenario on a connected pair of sockets, ours and the peer's."""

    async def play() -> None:
        ours, peer = socket.socketpair()
        with ours, peer:
            ours.setblocking(False)
            peer.setblocking(False)
            await scenario(ours, peer)

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


def outbound(
    ours: socket.socket, writability: WriteReadiness | None = None
) -> tuple[Outbound, asyncio.Event, list[OSError]]:
    """A queue on our end, what tells that it drained, and what broke it."""
    drained, broken = asyncio.Event(), list[OSError]()
    queue = Outbound(
        asyncio.get_running_loop(),
        ours.fileno(),
        writability or WriteReadiness(),
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


@pytest.mark.parametrize("size", [0, 10, SENDFILE_BYTES_MIN - 1, SENDFILE_BYTES_MIN, 3_000_000])
def test_bytes_and_slices_arrive_in_order(tmp_path: Path, size: int) -> None:
    """Whatever way a slice takes to the kernel, the peer sees one ordered stream."""
    file, content = file_of(tmp_path / "segment", size)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
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

    run(scenario)


def test_a_peer_that_does_not_read_makes_the_queue_wait() -> None:
    """Backpressure is visible at once, later sends queue up, and the order holds."""

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, _ = outbound(ours)
        first, second = os.urandom(4 << 20), os.urandom(100)
        queue.send([first])
        assert queue.waiting
        queue.send([second])
        assert await receive(peer, len(first) + len(second)) == first + second
        await drained.wait()
        assert not queue.waiting
        queue.close()

    run(scenario)


def test_a_peer_that_takes_everything_has_turns_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many bytes the loop goes on with others, though the socket would take more."""
    monkeypatch.setattr(outbound_module, "TIME_SLICE_BYTES", SENDFILE_BYTES_MIN)
    size = SENDFILE_BYTES_MIN
    file, content = file_of(tmp_path / "segment", 3 * size)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send([FileSlice(file, start, size, 0) for start in range(0, 3 * size, size)])
        assert queue.waiting
        assert await receive(peer, size) == content[:size]
        assert await receive(peer, 2 * size) == content[size:]
        await drained.wait()
        assert not broken
        queue.close()

    run(scenario)


def test_peers_that_can_take_more_at_once_share_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait no longer for several that read fast than for one."""
    turn = 2 * SENDFILE_BYTES_MIN
    monkeypatch.setattr(outbound_module, "TIME_SLICE_BYTES", turn)
    size = 2_000_000
    file, content = file_of(tmp_path / "segment", size)
    counts: list[tuple[int, int]] = []
    real = os.sendfile

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        writability = WriteReadiness()

        def sendfile(out: int, fd: int, position: int, count: int) -> int:
            counts.append((writability.together, count))
            return real(out, fd, position, count)

        monkeypatch.setattr(os, "sendfile", sendfile)
        second, its_peer = socket.socketpair()
        with second, its_peer:
            second.setblocking(False)
            its_peer.setblocking(False)
            queues = [outbound(end, writability)[0] for end in (ours, second)]
            for queue in queues:
                queue.send([FileSlice(file, 0, size, 0)])
                assert queue.waiting
            first, other = await asyncio.gather(receive(peer, size), receive(its_peer, size))
            assert first == other == content
            for queue in queues:
                queue.close()

    run(scenario)
    assert all(count <= turn // together for together, count in counts)
    assert {together for together, _ in counts} >= {1, 2}


def asked_of(path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Send a slice of so many bytes to a peer that has the queue wait, the file being in memory.

    Returns the ranges that were asked for, as offsets within the slice.
    """
    asked = []
    real = cold_reads.in_memory

    def in_memory(fd: int, start: int, end: int) -> bool:
        asked.append((start - 1000, end - 1000))
        return real(fd, start, end)

    monkeypatch.setattr(cold_reads, "in_memory", in_memory)
    file, content = file_of(path, 1000 + size)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000)
        queue, drained, broken = outbound(ours)
        queue.send([FileSlice(file, 1000, size, 0)])
        assert queue.waiting
        assert await receive(peer, size) == content[1000:]
        if queue.waiting:
            await drained.wait()
        assert not broken
        queue.close()

    run(scenario)
    return asked


def test_each_window_is_asked_for_once_and_before_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is given a window at least, so that only the socket or the end cuts a send."""
    monkeypatch.setattr(outbound_module, "KNOWN_S", 1e9)
    monkeypatch.setattr(outbound_module, "TIME_SLICE_BYTES", 1 << 30)
    size, window = 5_000_000, cold_reads.WINDOW_BYTES
    offered = []
    real = os.sendfile

    def sendfile(out: int, fd: int, position: int, count: int) -> int:
        offered.append((position - 1000, count))
        return real(out, fd, position, count)

    monkeypatch.setattr(os, "sendfile", sendfile)
    asked = asked_of(tmp_path / "segment", size, monkeypatch)
    starts = range(0, size, window)
    assert asked == [(start, min(start + window, size)) for start in starts]
    assert len(offered) > len(asked)
    assert all(count >= min(window, size - position) for position, count in offered)


def test_after_a_long_wait_it_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that reads slowly gives the kernel the time to drop what was in memory."""
    monkeypatch.setattr(outbound_module, "KNOWN_S", -1.0)
    asked = asked_of(tmp_path / "segment", 2_000_000, monkeypatch)
    assert len(asked) > 2
    assert all(later[0] < earlier[1] for earlier, later in pairwise(asked))


def test_cached_data_is_sent_before_a_cold_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cold window ahead holds nothing up before its own turn has come."""
    window = cold_reads.WINDOW_BYTES
    file, content = file_of(tmp_path / "segment", 2 * window)
    go_on, cold_from = threading.Event(), [window]
    real = cold_reads.bring_in

    def bring_in(file: DataFile, start: int, end: int, limit: int) -> None:
        assert start == window
        assert go_on.wait(seconds(ANSWER))
        real(file, start, end, limit)
        cold_from[0] = end

    monkeypatch.setattr(cold_reads, "in_memory", lambda _, __, end: end <= cold_from[0])
    monkeypatch.setattr(cold_reads, "bring_in", bring_in)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send([FileSlice(file, 0, 2 * window, 0)])
        assert await receive(peer, window) == content[:window]
        with pytest.raises(BlockingIOError):
            peer.recv(1)
        go_on.set()
        assert await receive(peer, window) == content[window:]
        if queue.waiting:
            await drained.wait()
        assert not broken
        queue.close()

    run(scenario)


def test_a_truncated_slice_breaks_the_connection(tmp_path: Path) -> None:
    """Its length is announced already: other bytes in its place would corrupt the client."""
    file, _ = file_of(tmp_path / "segment", 1000)
    piece = FileSlice(file, 0, 1000, 0)
    file.truncate(500)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        queue.send([piece])
        await asyncio.sleep(0)  # The failure is reported from the loop, not from within send.
        assert len(broken) == 1
        assert "truncated" in str(broken[0])
        queue.close()

    run(scenario)


def test_a_peer_that_has_gone_is_reported() -> None:
    """A reset connection is an ordinary event, told once, never an exception out of send."""

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        peer.close()
        queue.send([b"anybody there?"])
        await asyncio.sleep(0)
        assert len(broken) == 1
        queue.close()

    run(scenario)


def test_a_peer_that_has_gone_is_not_called_idle() -> None:
    """What it did not take stays queued until its owner has heard, and has not waited since 0."""

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        peer.close()
        before = asyncio.get_running_loop().time()
        queue.send([bytes(RUN_BYTES_MAX), b"anybody there?"])
        assert queue.waiting
        assert queue.moved_at >= before
        await asyncio.sleep(0)
        assert len(broken) == 1
        queue.close()

    run(scenario)


def test_more_pieces_than_one_send_may_carry(tmp_path: Path) -> None:
    """The kernel takes 1,024 pieces at a time, and fewer bytes than that when the peer is slow."""
    file, content = file_of(tmp_path / "segment", 4000)
    items: list[Item] = []
    expected = bytearray()
    for number in range(2500):
        head = number.to_bytes(4, "big") * 50
        items += [head, FileSlice(file, number, 1500, 0)]
        expected += head + content[number : number + 1500]

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, drained, broken = outbound(ours)
        queue.send(items)
        assert queue.waiting
        assert await receive(peer, len(expected)) == expected
        await drained.wait()
        assert not broken
        queue.close()

    run(scenario)


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
        assert go_on.wait(seconds(ANSWER))
        real(*where)

    real = cold_reads.bring_in
    monkeypatch.setattr(cold_reads, "bring_in", bring_in)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
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

    run(scenario)
    assert readers
    assert threading.main_thread() not in readers


@pytest.mark.usefixtures("no_reading_ahead")
def test_a_client_that_left_is_not_read_for(tmp_path: Path) -> None:
    """Closing during a cold read sends nothing more and reports nothing."""
    file, _ = file_of(tmp_path / "segment", 3_000_000)
    page_cache.evict(file)

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
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

    run(scenario)


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

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        queue, _, broken = outbound(ours)
        shown = asyncio.Event()

        def on_broken(error: OSError) -> None:
            broken.append(error)
            shown.set()

        queue._on_broken = on_broken
        queue.send([FileSlice(file, 0, 100_000, 0)])
        await shown.wait()
        assert broken[0].errno == errno.EIO
        queue.close()

    run(scenario)


def test_a_closed_queue_lets_go_of_its_owner() -> None:
    """A connection's memory comes back with its end, not when the collector looks at everything."""

    class Owner:
        def shown(self, *_: object) -> None:
            """Nothing to do."""

    async def scenario(ours: socket.socket, peer: socket.socket) -> None:
        owner = Owner()
        gone = weakref.ref(owner)
        queue = Outbound(
            asyncio.get_running_loop(),
            ours.fileno(),
            WriteReadiness(),
            on_drained=owner.shown,
            on_broken=owner.shown,
        )
        queue.close()
        del owner
        assert gone() is None

    run(scenario)
