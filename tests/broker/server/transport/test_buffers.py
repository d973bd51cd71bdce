"""The receive buffer pool."""

from pathlib import Path

from barnabas_broker.server.transport.buffers import POOL_BYTES_MAX, POOLED_SIZES, BufferPool


def test_a_buffer_has_room_for_more_than_it_must_hold() -> None:
    """A frame that filled its buffer must get one that can take the next byte."""
    pool = BufferPool()
    for held in (0, 1, *POOLED_SIZES[:-1]):
        assert len(pool.take(held, frame_bytes=100 << 20)) > held


def test_memory_follows_bytes_received_not_bytes_announced() -> None:
    """A peer that announces 100 MiB and sends a few bytes is given the smallest buffer."""
    pool = BufferPool()
    assert len(pool.take(10, frame_bytes=100 << 20)) == POOLED_SIZES[0]
    assert len(pool.take(8 << 20, frame_bytes=100 << 20)) == 16 << 20
    assert len(pool.take(80 << 20, frame_bytes=100 << 20)) == 100 << 20


def test_a_large_buffer_is_memory_only_where_bytes_arrived() -> None:
    """Not even the zeros that it begins with are written before."""

    def resident() -> int:
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * 4096

    pool = BufferPool()
    before = resident()
    buffer = pool.take(512 << 20, frame_bytes=1 << 30)
    assert len(buffer) == 1 << 30
    buffer[100:104] = b"some"
    assert bytes(buffer[99:105]) == b"\0some\0"
    assert resident() - before < 256 << 20
    pool.give_back(buffer)


def test_returned_buffers_are_used_again_up_to_a_bound() -> None:
    """Reuse saves page faults; what is kept for it is bounded."""
    pool = BufferPool()
    largest = POOLED_SIZES[-1]
    buffers = [bytearray(largest) for _ in range(POOL_BYTES_MAX // largest + 1)]
    for buffer in buffers:
        pool.give_back(buffer)
    taken = [pool.take(largest - 1, frame_bytes=largest) for _ in buffers]
    kept = sum(any(one is other for other in buffers) for one in taken)
    assert kept == len(buffers) - 1


def test_unused_buffers_are_released() -> None:
    """Those that were in use at once since the last time stay, and no more of them."""
    pool = BufferPool()
    size = POOLED_SIZES[-1]
    buffers = [bytearray(size) for _ in range(3)]
    for buffer in buffers:
        pool.give_back(buffer)
    pool.drop_unused()
    used = [pool.take(size - 1, frame_bytes=size) for _ in range(2)]
    assert {id(one) for one in used} <= {id(one) for one in buffers}
    for taken in used:
        pool.give_back(taken)
    pool.drop_unused()
    again = [pool.take(size - 1, frame_bytes=size) for _ in range(3)]
    assert sum(any(one is other for other in buffers) for one in again) == 2


def test_room_for_reuse_returns_with_what_is_dropped() -> None:
    """A full pool that was emptied keeps as much as before."""
    pool = BufferPool()
    largest = POOLED_SIZES[-1]
    for _ in range(2):
        buffers = [bytearray(largest) for _ in range(POOL_BYTES_MAX // largest + 1)]
        for buffer in buffers:
            pool.give_back(buffer)
        taken = [pool.take(largest - 1, frame_bytes=largest) for _ in buffers]
        assert sum(any(one is other for other in buffers) for one in taken) == len(buffers) - 1
        for buffer in buffers[:-1]:
            pool.give_back(buffer)
        pool.drop_unused()
        pool.drop_unused()
    fresh = pool.take(largest - 1, frame_bytes=largest)
    assert not any(fresh is other for other in buffers)
