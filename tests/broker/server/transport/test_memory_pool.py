"""The shared memory of unfinished requests."""

import mmap
from dataclasses import dataclass, field
from pathlib import Path

from barnabas_broker.server.background import heap
from barnabas_broker.server.transport.buffers import Buffer, BufferPool
from barnabas_broker.server.transport.memory_pool import (
    BYTES_PER_S_MIN,
    GRACE_S,
    SHORT_GRACE_S,
    SHORT_WHOLE_S,
    THRIFTY_READ_BYTES,
    MemoryPool,
)

MIB = 1 << 20
GIANT = 100 * MIB


@dataclass(eq=False)
class Sender:
    """A connection that receives a request of `frame_bytes`, as a session would."""

    memory: MemoryPool
    frame_bytes: int
    received_bytes: int = 0
    receiving: bool = True
    buffer: Buffer = field(default_factory=bytearray)

    @property
    def missing_bytes(self) -> int:
        return self.frame_bytes - self.received_bytes

    def begin(self, now: float = 0.0) -> None:
        """The first bytes arrive."""
        self.received_bytes = 10
        self.buffer = self.memory.take(self, 10, frame_bytes=self.frame_bytes, now=now)

    def fill(self) -> None:
        """Bytes arrive for as long as there is memory for them."""
        self.receiving = True
        while self.received_bytes < self.frame_bytes:
            self.received_bytes = min(len(self.buffer), self.frame_bytes)
            if self.received_bytes == self.frame_bytes:
                break
            larger = self.memory.grow(self, len(self.buffer), frame_bytes=self.frame_bytes)
            if larger is None:
                self.receiving = False
                break
            self.memory.give_back(self.buffer)
            self.buffer = larger

    def memory_granted(self) -> None:
        self.fill()

    def end(self) -> None:
        """The request is whole, or the connection gone."""
        self.memory.release(self, self.buffer)

    @property
    def is_whole(self) -> bool:
        return self.received_bytes == self.frame_bytes


def started(memory: MemoryPool, count: int, frame_bytes: int = GIANT) -> list[Sender]:
    """So many senders with the beginning of a request each."""
    senders = [Sender(memory, frame_bytes) for _ in range(count)]
    for sender in senders:
        sender.begin()
    return senders


def test_announcing_much_costs_little() -> None:
    """A thousand announcements of 100 MiB hold four megabytes."""
    memory = MemoryPool(BufferPool(), budget=64 * MIB)
    started(memory, 1000)
    assert memory.held == 1000 * 4096


def test_never_more_is_held_than_the_budget_and_one_request() -> None:
    """However many giants arrive as fast as they can."""
    memory = MemoryPool(BufferPool(), budget=64 * MIB)
    for sender in started(memory, 20):
        sender.fill()
        assert memory.held <= 64 * MIB + GIANT


def test_all_requests_complete() -> None:
    """One request can always finish, and its end lets the next go on."""
    memory = MemoryPool(BufferPool(), budget=32 * MIB)
    unfinished = started(memory, 8)
    for sender in unfinished:
        sender.fill()
    rounds = 0
    while unfinished:
        whole = [sender for sender in unfinished if sender.is_whole]
        assert whole
        for sender in whole:
            sender.end()
        unfinished = [sender for sender in unfinished if not sender.is_whole]
        memory.wake()
        rounds += 1
    assert rounds == 8
    assert (memory.held, memory.used) == (0, 0)


def test_a_request_larger_than_the_budget_fits_when_alone() -> None:
    """`queued.max.request.bytes` below `socket.request.max.bytes` stops nobody for ever."""
    memory = MemoryPool(BufferPool(), budget=1 * MIB)
    sender = started(memory, 1)[0]
    sender.fill()
    assert sender.is_whole


def test_giants_leave_room_for_ordinary_requests() -> None:
    """What giants may fill is not all there is."""
    memory = MemoryPool(BufferPool(), budget=64 * MIB)
    for giant in started(memory, 20):
        giant.fill()
    ordinary = started(memory, 5, MIB)
    for sender in ordinary:
        sender.fill()
    assert all(sender.is_whole for sender in ordinary)


def test_freed_memory_goes_to_the_request_that_lacks_least() -> None:
    """When memory comes back, the request that is nearest to its end gets it."""
    memory = MemoryPool(BufferPool(), budget=8 * MIB)
    giants = started(memory, 3)
    for giant in giants:
        giant.fill()
    small = started(memory, 8, 2 * MIB)
    for sender in small:
        sender.fill()
    waiting = [sender for sender in small if not sender.is_whole]
    assert waiting
    next(giant for giant in giants if giant.is_whole).end()
    memory.wake()
    assert any(sender.is_whole for sender in waiting)
    assert not any(giant.is_whole for giant in giants[1:])


def test_little_is_read_at_once_while_memory_is_short() -> None:
    """What has arrived must be kept somewhere, so little may arrive."""
    memory = MemoryPool(BufferPool(), budget=4 * MIB)
    ordinary = started(memory, 4, MIB)
    for sender in ordinary:
        sender.fill()
    assert len(memory.read_into) == THRIFTY_READ_BYTES
    for sender in ordinary:
        sender.end()
    assert len(memory.read_into) > THRIFTY_READ_BYTES


def test_a_slow_sender_is_overdue_after_a_grace() -> None:
    """A byte now and then does not prolong it; the slowest honest link does."""
    memory = MemoryPool(BufferPool(), budget=64 * MIB)
    trickle, steady = started(memory, 2)
    assert list(memory.overdue(GRACE_S)) == []
    steady.received_bytes = int(GRACE_S) * BYTES_PER_S_MIN
    assert list(memory.overdue(GRACE_S + 2)) == [trickle]


def test_the_time_of_a_sender_begins_when_it_is_its_turn() -> None:
    """What is pipelined behind a long poll waits for us, not we for it."""
    memory = MemoryPool(BufferPool(), budget=64 * MIB)
    sender = started(memory, 1)[0]
    sender.receiving = False
    assert list(memory.overdue(1000.0)) == []
    sender.receiving = True
    assert list(memory.overdue(1000.0 + GRACE_S)) == []
    assert list(memory.overdue(1001.0 + GRACE_S)) == [sender]


def test_the_timeout_is_short_while_others_wait_for_memory() -> None:
    """Slow senders and those that hold much without sending go; who waits for memory stays."""
    memory = MemoryPool(BufferPool(), budget=4 * MIB)
    slow, parked, steady, lane, waiting = started(memory, 5)
    slow.received_bytes = 10
    parked.fill()
    parked.receiving = False
    for sender in (lane, waiting):
        sender.fill()
    assert memory.is_short
    assert list(memory.overdue(0.0)) == []
    steady.received_bytes = 1 * MIB
    overdue = set(memory.overdue(SHORT_GRACE_S + 1))
    assert {slow, parked} <= overdue
    assert not {steady, waiting} & overdue
    for second in range(7, int(SHORT_WHOLE_S) + 1):
        steady.received_bytes += MIB // 8
        assert steady not in list(memory.overdue(second))
    assert steady in list(memory.overdue(SHORT_WHOLE_S + 1))


def test_a_scheduled_connection_is_kept_while_memory_is_short() -> None:
    """It is not its fault that what it sent at once takes long among others."""
    memory = MemoryPool(BufferPool(), budget=4 * MIB)
    _, served, _, lane, waiting = started(memory, 5)
    served.fill()
    served.receiving = False
    for sender in (lane, waiting):
        sender.fill()
    assert memory.is_short
    assert list(memory.overdue(0.0)) == []
    memory.progressed(served, SHORT_GRACE_S)
    assert served not in list(memory.overdue(SHORT_GRACE_S + 1))
    assert served in list(memory.overdue(2 * SHORT_GRACE_S + 1))


def test_a_receiving_connection_is_kept_while_memory_is_short() -> None:
    """It is never seen when it is its turn to send, but what it sends has arrived."""
    memory = MemoryPool(BufferPool(), budget=4 * MIB)
    _, received, _, lane, waiting = started(memory, 5)
    received.fill()
    received.receiving = False
    for sender in (lane, waiting):
        sender.fill()
    assert memory.is_short
    assert list(memory.overdue(0.0)) == []
    received.received_bytes += MIB // 2
    assert received not in list(memory.overdue(SHORT_GRACE_S + 1))
    assert received in list(memory.overdue(2 * SHORT_GRACE_S + 2))


def test_a_request_that_came_fast_and_then_stopped_is_dropped() -> None:
    """What it brought before buys it no more time than others have."""
    memory = MemoryPool(BufferPool(), budget=4 * MIB)
    stopped, lane, waiting = started(memory, 3)
    stopped.received_bytes = 2 * MIB
    for sender in (lane, waiting):
        sender.fill()
    assert memory.is_short
    assert list(memory.overdue(1.0)) == []
    assert stopped in list(memory.overdue(2.0 + SHORT_GRACE_S))


MEMORY = Path("/proc/self/statm")


def resident_bytes() -> int:
    """What of this process is in memory."""
    return int(MEMORY.read_text().split()[1]) * mmap.PAGESIZE


def test_memory_in_front_of_what_lives_is_given_back() -> None:
    """The last of many allocations would keep all the others' memory."""
    blocks = [bytearray(64 << 10) for _ in range(1024)]
    last = blocks.pop()
    before = resident_bytes()
    del blocks
    heap.trim()
    assert before - resident_bytes() > 48 * MIB
    assert last == bytes(64 << 10)
