"""What a session on a TLS listener still has to send: as `outbound`, through the TLS transport.

Bytes are encrypted in this process, so slices of files are read instead of handed to the kernel.
Whatever is large, slices and converted batches alike, is encrypted a chunk in a round of the event
loop, and no further than the transport's buffer has room. What has left the page cache is brought
back by a thread first (`server.transport.cold_reads`).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from barnabas_broker.log.files import FileSlice
from barnabas_broker.server.transport import cold_reads
from barnabas_broker.server.transport.outbound import Item

CHUNK_BYTES: Final = 256 << 10
"""How much is read of a file and encrypted at once: some hundred microseconds."""

HIGH_WATER_BYTES: Final = 256 << 10
"""Encrypted bytes that wait for the peer before no more are made."""


class TlsOutbound:
    """An ordered queue of things to send through a TLS transport.

    `on_drained` is called when a queue that had to wait is empty again, `on_broken` when the
    peer is gone; neither is called from within `send`. The session passes on what the transport
    says of its buffer: `pause_writing` and `resume_writing`.
    """

    __slots__ = (
        "_cold_from",
        "_handle",
        "_loop",
        "_on_broken",
        "_on_drained",
        "_paused",
        "_queue",
        "_read",
        "_transport",
        "_warming",
        "moved_at",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        *,
        on_drained: Callable[[], None],
        on_broken: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._on_drained = on_drained
        self._on_broken = on_broken
        self._queue: deque[Item] = deque()
        self._read = 0  # Bytes of the first item, a slice, that were given to the transport.
        self._paused = False
        self._handle: asyncio.Handle | None = None
        self._warming: asyncio.Future[None] | None = None
        self._cold_from: int | None = None
        #: loop time at which the transport last had no room for all there was
        self.moved_at = 0.0
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)

    @property
    def waiting(self) -> bool:
        """Whether something is still to be sent, so that nothing more should be read."""
        return self._paused or bool(self._queue)

    @property
    def held_bytes(self) -> int:
        """Memory that queue and transport hold; slices of files hold none."""
        queued = sum(len(item) for item in self._queue if not isinstance(item, FileSlice))
        return queued + self._transport.get_write_buffer_size()

    def send(self, items: Sequence[Item]) -> None:
        """Send `items` after whatever is queued, as far as the transport takes them now."""
        waiting = bool(self._queue)
        self._queue.extend(items)
        if not waiting:
            self._advance()

    def pause_writing(self) -> None:
        """The transport's buffer is full."""
        self._paused = True
        self.moved_at = self._loop.time()

    def resume_writing(self) -> None:
        """The transport's buffer has room again."""
        self._paused = False
        self.moved_at = self._loop.time()
        self._go_on()

    def close(self) -> None:
        """Forget what is queued and let go of files; the connection has ended."""
        self._queue.clear()
        for pending in (self._handle, self._warming):
            if pending is not None:
                pending.cancel()
        self._handle = self._warming = None
        # Else it and its owner hold each other until a full garbage collection.
        self._on_drained = self._on_broken = _ignore

    def _go_on(self) -> None:
        self._handle = None
        self._advance()
        if not self.waiting:
            self._on_drained()

    def _advance(self) -> None:
        """Give the transport what it has room for; of files one chunk per iteration of the loop."""
        if self._warming is not None or self._handle is not None:
            return
        try:
            while self._queue and not self._paused:
                head = self._queue[0]
                if isinstance(head, FileSlice):
                    if not self._write_chunk(head):
                        return
                elif len(head) <= CHUNK_BYTES:
                    self._queue.popleft()
                    self._transport.write(head)
                else:
                    self._queue[0] = memoryview(head)[CHUNK_BYTES:]
                    self._transport.write(memoryview(head)[:CHUNK_BYTES])
                    if not self._paused:
                        self._yield_to_others()
                        return
        except (OSError, RuntimeError, ValueError) as error:  # A closed file or transport, too.
            self.moved_at = self._loop.time()
            self._loop.call_soon(self._on_broken, _os_error(error))

    def _write_chunk(self, item: FileSlice) -> bool:
        """Write the next chunk of a slice; False where the rest of the queue has to wait.

        Raises OSError where the file no longer has what the response announced.
        """
        if not item.intact:
            raise _truncated(item)
        position = item.position + self._read
        size = min(item.length - self._read, CHUNK_BYTES)
        data: bytes | bytearray
        if self._cold_from == position:  # It was just brought in: not asked again.
            data = item.file.read(position, size)
        else:
            found = cold_reads.read_in_memory(item.file, position, size)
            if found is None:
                self._bring_in(item, position, size)
                return False
            data = found
        self._cold_from = None
        if len(data) < size:
            raise _truncated(item)
        self._read += size
        finished = self._read == item.length
        if finished:
            self._queue.popleft()
            self._read = 0
        self._transport.write(data)
        if self._queue and not self._paused and not finished:
            self._yield_to_others()
            return False
        return True

    def _yield_to_others(self) -> None:
        """Go on in the loop's next iteration: others are served between two chunks."""
        self.moved_at = self._loop.time()
        self._handle = self._loop.call_soon(self._go_on)

    def _bring_in(self, item: FileSlice, position: int, size: int) -> None:
        self.moved_at = self._loop.time()  # A slow disk is not the peer's fault.
        limit = item.position + item.length
        self._warming = warming = self._loop.run_in_executor(
            cold_reads.THREADS, cold_reads.bring_in, item.file, position, position + size, limit
        )
        warming.add_done_callback(lambda future: self._brought_in(future, position))

    def _brought_in(self, future: "asyncio.Future[None]", position: int) -> None:
        if future.cancelled():
            return
        self._warming = None
        error = future.exception()
        if error is not None:
            self._on_broken(_os_error(error))
            return
        self._cold_from = position
        self._go_on()


def _ignore(*_: object) -> None:
    """The callbacks of a closed queue."""


def _os_error(error: BaseException) -> OSError:
    return error if isinstance(error, OSError) else OSError(f"{type(error).__name__}: {error}")


def _truncated(item: FileSlice) -> OSError:
    return OSError(f"{item.file.path} was truncated while a client was reading it")
