"""Deletions of records that wait for followers: the purgatory of the DeleteRecords API.

Records before an offset are gone once no replica of the partition on a live broker begins before
it: any next leader then has none. Followers learn of a new log start with their next
fetch, and say with the one after it where their own log begins (Kafka's DelayedDeleteRecords).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from barnabas_broker.replica.delayed_operation import DelayedOperation
from barnabas_kafka.errors import ErrorCode


class Awaited(Protocol):
    """Something a deletion can wait on: a partition led here."""

    delete_waiters: set["DelayedDeleteRecords"]

    def deletion_verdict(self, offset: int) -> ErrorCode | None:
        """NONE once nothing before `offset` is left, None while it is, or why it is unknown."""


@dataclass(frozen=True, slots=True)
class Undeleted:
    """A partition with a live replica that begins before `offset`; `complete` gets the result."""

    partition: Awaited
    offset: int
    complete: Callable[[ErrorCode], None]


class DelayedDeleteRecords(DelayedOperation[Undeleted]):
    """One waiting deletion."""

    __slots__ = ()

    def _verdict(self, part: Undeleted) -> ErrorCode | None:
        return part.partition.deletion_verdict(part.offset)

    def _waiters(self, part: Undeleted) -> set["DelayedDeleteRecords"]:
        return part.partition.delete_waiters
