"""What a session still has to send: bytes and slices of log files, in order.

Sending goes straight to the socket, not through the transport's own buffer: a slice of a file is
handed to the kernel with sendfile and its bytes never enter this process. Only when the peer
reads slower than we send does the queue wait; the wake-up then comes through a duplicate of the
socket's descriptor, because an event loop lets nobody else watch a descriptor that one of its
transports owns.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from barnabas_broker.log.files import FileSlice

SENDFILE_BYTES_MIN: Final = 256 << 10
"""Below this one pread and one send cost less than sendfile does (measured on loopback)."""

RUN_BYTES_MAX: Final = 1 << 20
"""How much is joined for one send, so that many small slices never fill memory at once."""

Item = bytes | bytearray | memoryview | FileSlice


class Outbound:
    """An ordered queue of things to send on one plain TCP socket.

    `on_drained` is called when a queue that had to wait is empty again, `on_broken` when the
    peer is gone; neither is called from within `send`.
    """

    __slots__ = ("_duplicate", "_fd", "_loop", "_on_broken", "_on_drained", "_queue", "_sent")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._queue: deque[Item] = deque()
        self._sent = 0  # Bytes of the first item that the kernel has taken.
        self._duplicate = -1

    @property
    def waiting(self) -> bool:
        """Whether something is still to be sent, so that nothing more should be read."""
        return bool(self._queue)

    def send(self, items: Iterable[Item]) -> None:
        """Send `items` after whatever is queued, as far as the socket takes them now."""
        waiting = bool(self._queue)
        self._queue.extend(items)
        if not waiting:
            self._advance()

    def close(self) -> None:
        """Forget what is queued and let go of files and of the duplicate descriptor."""
        self._queue.clear()
        if self._duplicate >= 0:
            self._loop.remove_writer(self._duplicate)
            os.close(self._duplicate)
            self._duplicate = -1

    def _advance(self) -> None:
        try:
            while self._queue:
                head = self._queue[0]
                if isinstance(head, FileSlice) and head.length >= SENDFILE_BYTES_MIN:
                    all_taken = self._push_slice(head)
                else:
                    all_taken = self._push_run()
                if not all_taken:
                    self._wait()
                    return
        except BlockingIOError:
            self._wait()
        except OSError as error:
            self._loop.call_soon(self._on_broken, error)

    def _push_slice(self, item: FileSlice) -> bool:
        """Have the kernel send what it takes of a large slice; true once it is all gone."""
        _require_intact(item)
        position = item.position + self._sent
        sent = os.sendfile(self._fd, item.file.fd, position, item.length - self._sent)
        if sent == 0:
            raise _cut(item)
        self._sent += sent
        if self._sent < item.length:
            return False
        self._sent = 0
        self._queue.popleft()
        return True

    def _push_run(self) -> bool:
        """Send the bytes and small slices at the head of the queue with one system call."""
        data = self._queue[0]
        if isinstance(data, FileSlice) or (len(self._queue) > 1 and not self._sent):
            data = self._gather()
        sent = os.write(self._fd, memoryview(data)[self._sent :] if self._sent else data)
        self._sent += sent
        if self._sent < len(data):
            return False
        self._sent = 0
        self._queue.popleft()
        return True

    def _gather(self) -> bytes | bytearray | memoryview:
        """Join the head of the queue up to `RUN_BYTES_MAX` into one new head, and return that."""
        run: list[bytes | bytearray | memoryview] = []
        size = 0
        while self._queue and size < RUN_BYTES_MAX:
            item = self._queue[0]
            if isinstance(item, FileSlice):
                if item.length >= SENDFILE_BYTES_MIN:
                    break
                data: bytes | bytearray | memoryview = _content(item)
            else:
                data = item
            self._queue.popleft()
            run.append(data)
            size += len(data)
        joined = run[0] if len(run) == 1 else b"".join(run)
        self._queue.appendleft(joined)
        return joined

    def _wait(self) -> None:
        if self._duplicate < 0:
            self._duplicate = os.dup(self._fd)
        self._loop.add_writer(self._duplicate, self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self._duplicate)
        self._advance()
        if not self._queue:
            self._on_drained()


def _content(item: FileSlice) -> bytes:
    _require_intact(item)
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
