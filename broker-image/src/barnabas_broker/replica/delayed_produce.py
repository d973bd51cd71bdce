"""Writes that wait until their records count: the purgatory of the Produce API.

What was appended counts when every in-sync replica holds it (`acks=-1`) or this one does
(`acks=1`), and holding it means on disk where `barnabas.durability` says so. A
write waits on each of its partitions that is not that far; it is answered when all of them are,
or cannot be any more, or when its time is up (Kafka's DelayedProduce).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from barnabas_broker.replica.delayed_operation import DelayedOperation
from barnabas_kafka.errors import ErrorCode

ALL_IN_SYNC = -1
"""`acks` of a producer that wants its records held by every in-sync replica."""


class Awaited(Protocol):
    """Something a write can wait on: a partition led here."""

    produce_waiters: set["DelayedProduce"]

    def verdict(self, end: int, *, acks: int, leader_epoch: int) -> ErrorCode | None:
        """NONE once everything below `end` counts, None while it does not, or why it never will."""


@dataclass(frozen=True, slots=True)
class Uncounted:
    """What was appended to one partition and does not count yet: all below the offset `end`.

    `complete` is called once with the verdict.
    """

    partition: Awaited
    end: int
    leader_epoch: int
    complete: Callable[[ErrorCode], None]


class DelayedProduce(DelayedOperation[Uncounted]):
    """One waiting write."""

    __slots__ = ("_acks",)

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pending: Iterable[Uncounted],
        *,
        acks: int,
        timeout_ms: int,
        response: object,
    ) -> None:
        self._acks = acks
        super().__init__(loop, pending, timeout_ms=timeout_ms, response=response)

    def _verdict(self, part: Uncounted) -> ErrorCode | None:
        return part.partition.verdict(part.end, acks=self._acks, leader_epoch=part.leader_epoch)

    def _waiters(self, part: Uncounted) -> set["DelayedProduce"]:
        return part.partition.produce_waiters
