"""In how many requests a leader is asked about many partitions, so that one cannot hold up others.

Usually in one. Where that fails as a whole though the leader is there, one of its partitions may be
cause, without the error saying which: the next round asks in two parts, then in four, until what
fails is alone. Then it gets a fetcher of its own, which tries for ever, and the rest goes on
together. Where everything fails the leader is the cause, and no partition gets a fetcher of its
own. Pure: no I/O, no clock.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from barnabas_kafka.ids import TopicPartition

Ask = TypeVar("Ask")


class Parts:
    """The number of parts, and what the last round shows of the cause."""

    def __init__(self) -> None:
        self.count = 1

    def split(self, asked: Mapping[TopicPartition, Ask]) -> list[Mapping[TopicPartition, Ask]]:
        """Parts of the same size, in the same order each time."""
        if self.count == 1 or len(asked) < 2:
            return [asked]
        size = -(-len(asked) // self.count)
        names = sorted(asked)
        return [
            {tp: asked[tp] for tp in names[begin : begin + size]}
            for begin in range(0, len(names), size)
        ]

    def judge(
        self, failed: Collection[Collection[TopicPartition]], *, passed: int
    ) -> list[TopicPartition]:
        """The partitions that are to be set apart, after a round in which so many parts passed."""
        alone = [tp for part in failed if len(part) == 1 for tp in part] if passed else []
        if len(alone) == len(failed):
            self.count = 1
        elif any(len(part) > 1 for part in failed):
            self.count *= 2
        return alone


class Outcome:
    """How the requests of one round went."""

    def __init__(self, parts: Parts) -> None:
        self.passed = 0
        self._parts = parts
        self._failed: list[Collection[TopicPartition]] = []
        self._error: Exception | None = None

    def failed(self, part: Collection[TopicPartition], error: Exception) -> None:
        """A request about these failed."""
        self._failed.append(part)
        self._error = self._error or error

    def judge(self) -> list[TopicPartition]:
        """As `Parts.judge`. Raises what the first request failed with, if none passed."""
        alone = self._parts.judge(self._failed, passed=self.passed)
        if self._error is not None and not self.passed:
            raise self._error
        return alone
