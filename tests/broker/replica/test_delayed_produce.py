"""Waiting writes, with the partition reduced to its verdict."""

import asyncio
from functools import partial

from barnabas_broker.replica.delayed_produce import DelayedProduce, Uncounted
from barnabas_kafka.errors import ErrorCode


class Shelf:
    """Something that writes can wait on; what lies below `counts` counts."""

    def __init__(self) -> None:
        self.produce_waiters: set[DelayedProduce] = set()
        self.counts = 0
        self.fault: ErrorCode | None = None

    def verdict(self, end: int, *, acks: int, leader_epoch: int) -> ErrorCode | None:
        """As decided by the test."""
        assert (acks, leader_epoch) == (-1, 7)
        if self.fault is not None:
            return self.fault
        return ErrorCode.NONE if self.counts >= end else None

    def see(self, *, counts: int = 0, fault: ErrorCode | None = None) -> None:
        """Something happened."""
        self.counts, self.fault = counts, fault
        for write in list(self.produce_waiters):
            write.look()


class Write:
    """A write to some shelves, and what it was told of each."""

    def __init__(self, *wanted: tuple[Shelf, int], timeout_ms: int = 60_000) -> None:
        self.completed: list[tuple[int, ErrorCode]] = []
        self.waits = DelayedProduce(
            asyncio.get_running_loop(),
            [
                Uncounted(shelf, end, 7, partial(self._hear, number))
                for number, (shelf, end) in enumerate(wanted)
            ],
            acks=-1,
            timeout_ms=timeout_ms,
            response="response",
        )

    def _hear(self, number: int, code: ErrorCode) -> None:
        self.completed.append((number, code))


def test_it_waits_for_every_partition() -> None:
    """There is one answer, when the last partition is that far."""

    async def scenario() -> None:
        first, second = Shelf(), Shelf()
        write = Write((first, 3), (second, 5))
        first.see(counts=2)
        assert write.completed == []
        first.see(counts=3)
        assert (write.completed, first.produce_waiters) == ([(0, ErrorCode.NONE)], set())
        assert not write.waits.future.done()
        second.see(counts=9)
        assert await write.waits.future == "response"
        assert write.completed == [(0, ErrorCode.NONE), (1, ErrorCode.NONE)]
        assert second.produce_waiters == set()

    asyncio.run(scenario())


def test_partitions_decided_before_the_wait_are_reported_at_its_start() -> None:
    """Its partitions moved while the request was worked on, and may never move again."""

    async def scenario() -> None:
        first, second, failed = Shelf(), Shelf(), Shelf()
        first.see(counts=3)
        failed.see(fault=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        write = Write((first, 3), (second, 5), (failed, 1))
        assert write.completed == [(0, ErrorCode.NONE), (2, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
        assert (first.produce_waiters, failed.produce_waiters) == (set(), set())
        second.see(counts=5)
        assert await write.waits.future == "response"
        whole = Write((first, 3))
        assert whole.waits.future.done()
        assert first.produce_waiters == set()

    asyncio.run(scenario())


def test_time_is_up() -> None:
    """What does not count by then has timed out; what does is told so."""

    async def scenario() -> None:
        first, second = Shelf(), Shelf()
        write = Write((first, 1), (second, 1), timeout_ms=1)
        first.see(counts=1)
        assert await write.waits.future == "response"
        assert write.completed == [(0, ErrorCode.NONE), (1, ErrorCode.REQUEST_TIMED_OUT)]
        assert second.produce_waiters == set()

    asyncio.run(scenario())


def test_an_error_affects_its_partition_only() -> None:
    """A partition that was lost does not touch another's verdict."""

    async def scenario() -> None:
        first, second = Shelf(), Shelf()
        write = Write((first, 1), (second, 1))
        first.see(fault=ErrorCode.KAFKA_STORAGE_ERROR)
        second.see(counts=1)
        assert await write.waits.future == "response"
        assert write.completed == [(0, ErrorCode.KAFKA_STORAGE_ERROR), (1, ErrorCode.NONE)]

    asyncio.run(scenario())


def test_two_writes_of_a_partition() -> None:
    """Each is answered when its own records count."""

    async def scenario() -> None:
        shelf = Shelf()
        one, two = Write((shelf, 1)), Write((shelf, 2))
        shelf.see(counts=1)
        assert one.waits.future.done()
        assert not two.waits.future.done()
        shelf.see(counts=2)
        assert two.waits.future.done()

    asyncio.run(scenario())


def test_a_client_that_has_gone_leaves_nothing() -> None:
    """A cancelled wait is forgotten by every partition, and told nothing."""

    async def scenario() -> None:
        shelf = Shelf()
        write = Write((shelf, 1))
        write.waits.future.cancel()
        await asyncio.sleep(0)
        assert shelf.produce_waiters == set()
        write.waits.look()
        assert write.completed == []

    asyncio.run(scenario())
