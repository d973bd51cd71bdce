"""What a session still has to send: bytes and slices of log files, in order.

Sending goes straight to the socket, not through the transport's own buffer: a slice of a file is
handed to the kernel with sendfile and its bytes never enter this process. Only when the peer
reads slower than we send does the queue wait (`server.transport.write_readiness`).

Before bytes of a file are sent, they are in memory: what is not waits here, in its place, until a
thread has read it (`server.transport.cold_reads`).
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from barnabas_broker.log.files import FileSlice
from barnabas_broker.server.transport import cold_reads
from barnabas_broker.server.transport.write_readiness import WriteReadiness

SENDFILE_BYTES_MIN: Final = 32 << 10
"""Below this one pread costs less than a system call more (measured on loopback)."""

RUN_BYTES_MAX: Final = 1 << 20
RUN_ITEMS_MAX: Final = 1024
"""How much goes into one send: small slices never fill memory at once, and IOV_MAX is kept."""

TIME_SLICE_BYTES: Final = 768 << 10
"""How much is sent before the loop goes on with others: to one peer that takes all it gets, or to
to all those together whose sockets became writable at once."""

KNOWN_S: Final = 1.0
"""How long a peer may have the queue wait before what is in memory is asked again."""

Item = bytes | bytearray | memoryview | FileSlice


class Outbound:
    """An ordered queue of things to send on one plain TCP socket.

    `on_drained` is called when a queue that had to wait is empty again, `on_broken` when the
    peer is gone; neither is called from within `send`.
    """

    __slots__ = (
        "_budget",
        "_fd",
        "_loop",
        "_on_broken",
        "_on_drained",
        "_queue",
        "_sent",
        "_socket",
        "_warm_to",
        "_warming",
        "_writability",
        "moved_at",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        writability: WriteReadiness,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        # Only for its calls that take flags; the descriptor stays the transport's to close.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._queue: deque[Item] = deque()
        self._sent = 0  # Bytes of the first item, a large slice, that the kernel has taken.
        self._budget = 0  # Bytes that may still be sent in this iteration of the loop.
        self._writability = writability
        #: loop time at which the kernel last took less than all there was, or failed to
        self.moved_at = 0.0
        self._warm_to = 0  # Position to which the file of the first item is in memory.
        self._warming: asyncio.Future[None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether something is still to be sent, so that nothing more should be read."""
        return bool(self._queue)

    @property
    def held_bytes(self) -> int:
        """Memory that the queue holds; slices of files hold none."""
        return sum(len(item) for item in self._queue if not isinstance(item, FileSlice))

    def send(self, items: Sequence[Item]) -> None:
        """Send `items` after whatever is queued, as far as the socket takes them now."""
        waiting = bool(self._queue)
        if not waiting and len(items) == 1 and type(items[0]) is bytes:
            # Most answers: one piece, which the kernel takes at once.
            self._send_now(items[0])
            return
        self._queue.extend(items)
        if not waiting:
            self._advance()

    def _send_now(self, data: bytes) -> None:
        """What `_advance` does with bytes that are all there is."""
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._loop.call_soon(self._on_broken, error)
            return
        if sent < len(data):
            self._queue.append(memoryview(data)[sent:] if sent else data)
            self._wait()

    def close(self) -> None:
        """Forget what is queued and let go of files; before the socket is closed."""
        self._queue.clear()
        self._socket.detach()
        if self._warming is not None:
            self._warming.cancel()
            self._warming = None
        self._writability.forget(self._fd)
        # Else it and its owner hold each other until a full garbage collection.
        self._on_drained = self._on_broken = _do_nothing

    def _advance(self) -> None:
        self._budget = TIME_SLICE_BYTES // self._writability.together
        try:
            while self._queue:
                head = self._queue[0]
                if isinstance(head, FileSlice):
                    _require_intact(head)
                    if self._is_cold(head):
                        self._warm(head)
                        return
                if isinstance(head, FileSlice) and head.length >= SENDFILE_BYTES_MIN:
                    all_taken = self._push_slice(head)
                else:
                    all_taken = self._push_run()
                if not all_taken or (self._budget <= 0 and self._queue):
                    self._wait()
                    return
        except BlockingIOError:
            self._wait()
        except OSError as error:
            # What is queued stays until the owner's callback, and has not waited since the start.
            self.moved_at = self._loop.time()
            self._loop.call_soon(self._on_broken, error)

    def _push_slice(self, item: FileSlice) -> bool:
        """Have the kernel send of a large slice what is in memory and the budget leaves room for.

        True if it took all that.
        """
        position = item.position + self._sent
        size = min(min(item.position + item.length, self._warm_to) - position, self._budget)
        sent = os.sendfile(self._fd, item.file.fd, position, size)
        if sent == 0:
            raise _cut(item)
        self._sent += sent
        self._budget -= sent
        if self._sent == item.length:
            self._queue.popleft()
            self._sent = self._warm_to = 0
        return sent == size

    def _is_cold(self, item: FileSlice) -> bool:
        """Whether what is to be sent next of the first item must be read from disk first.

        Where a window's worth is not known to be in memory, a window more is asked for: a sendfile
        that ends where nothing is known yet, though the socket would take more, costs one more and
        sends a small packet in between.
        """
        start, limit = item.position + self._sent, item.position + item.length
        known = max(start, self._warm_to)
        if known < min(limit, start + cold_reads.WINDOW_BYTES):
            end = min(limit, known + cold_reads.WINDOW_BYTES)
            if cold_reads.in_memory(item.file.fd, known, end):
                known = self._warm_to = end
        return known == start < limit

    def _warm(self, item: FileSlice) -> None:
        self.moved_at = self._loop.time()  # A slow disk is not the peer's fault.
        start, limit = item.position + self._sent, item.position + item.length
        end = min(limit, start + cold_reads.WINDOW_BYTES)
        self._warming = warming = self._loop.run_in_executor(
            cold_reads.THREADS, cold_reads.bring_in, item.file, start, end, limit
        )
        warming.add_done_callback(lambda future: self._warmed(future, end))

    def _warmed(self, future: asyncio.Future[None], end: int) -> None:
        if future.cancelled():
            return
        self._warming = None
        try:
            future.result()
        except OSError as error:
            self._on_broken(error)
            return
        # Not asked again: what memory pressure took away meanwhile would be read for ever.
        self._warm_to = end
        self._advance()
        if not self._queue:
            self._on_drained()

    def _push_run(self) -> bool:
        """Send the bytes and small slices at the head of the queue with one system call."""
        run, size = self._take_run()
        # The bytes of a slice that can follow at once join these in the same packets, and the
        # peer is not woken for the head of a response alone.
        follows = self._queue[0] if self._queue else None
        at_once = isinstance(follows, FileSlice) and not self._is_cold(follows)
        flags = socket.MSG_MORE if at_once else 0
        try:
            if len(run) == 1:
                sent = self._socket.send(run[0], flags)
            else:
                sent = self._socket.sendmsg(run, (), flags)
        except BlockingIOError:
            sent = 0
        self._budget -= sent
        if sent == size:
            return True
        self._put_back(run, sent)
        return False

    def _take_run(self) -> tuple[list[bytes | bytearray | memoryview], int]:
        """Take what one send may carry off the queue; small slices are read here."""
        queue = self._queue
        run: list[bytes | bytearray | memoryview] = []
        size = 0
        while queue and size < RUN_BYTES_MAX and len(run) < RUN_ITEMS_MAX:
            item = queue[0]
            if isinstance(item, FileSlice):
                if item.length >= SENDFILE_BYTES_MIN:
                    break
                content = _content(item, wait=not run)
                if content is None:
                    break
                item = content
                self._warm_to = 0
            queue.popleft()
            run.append(item)
            size += len(item)
        return run, size

    def _put_back(self, run: list[bytes | bytearray | memoryview], sent: int) -> None:
        """Queue what the kernel did not take of a run, in front of everything else."""
        rest: list[Item] = []
        for data in run:
            if sent < len(data):
                rest.append(memoryview(data)[sent:] if sent else data)
                sent = 0
            else:
                sent -= len(data)
        self._queue.extendleft(reversed(rest))

    def _wait(self) -> None:
        self.moved_at = self._loop.time()
        self._writability.wait(self._fd, self._on_writable)

    def _on_writable(self) -> None:
        if self._loop.time() - self.moved_at > KNOWN_S:
            self._warm_to = 0  # It may have left memory since.
        self._advance()
        if not self._queue:
            self._on_drained()


def _do_nothing(*_: object) -> None:
    """The callback of a closed queue."""


def _content(item: FileSlice, *, wait: bool) -> bytes | bytearray | None:
    """The bytes of a slice; None where they are not in memory and may not be waited for."""
    _require_intact(item)
    if not wait:
        return cold_reads.read_in_memory(item.file, item.position, item.length)
    data = item.read()
    if len(data) < item.length:
        raise _cut(item)
    return data


def _require_intact(item: FileSlice) -> None:
    # Its length is already announced: with the bytes gone, only closing the connection is right.
    if not item.intact:
        raise _cut(item)


def _cut(item: FileSlice) -> OSError:
    return OSError(f"{item.file.path} was truncated while a client was reading it")
