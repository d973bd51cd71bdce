"""What clients remember is what happened: the checker must not take more for enough."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.cluster import load
from tests.cluster.load import read_all


class Read:
    """A message: a value, or the end of its partition."""

    def __init__(self, partition: int, offset: int, value: str | None) -> None:
        self._reported = partition, offset, value

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._reported[0]

    def offset(self) -> int:
        return self._reported[1]

    def value(self) -> bytes:
        return (self._reported[2] or "").encode()

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._reported[2] is None else None


class Lagging:
    """A consumer whose second partition ends early at first: its leader has just been elected."""

    def __init__(self, _settings: object) -> None:
        self._answers = [
            [Read(0, 0, "a-0"), Read(0, 1, "unanswered"), Read(0, 2, None), Read(1, 0, None)],
            [],
            [Read(1, 0, "a-1"), Read(1, 1, None)],
        ]

    def assign(self, _partitions: object) -> None:
        """All at once."""

    def consume(self, _count: int, _timeout: float) -> list[Any]:
        """What has come."""
        return self._answers.pop(0) if self._answers else []

    def close(self) -> None:
        """Read no more."""


def test_unacknowledged_records_do_not_replace_acknowledged_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as were acknowledged have come, and one that was acknowledged has not yet."""
    monkeypatch.setattr(load, "Consumer", Lagging)
    polls = read_all("", "t", 2, values=["a-0", "a-1"])
    assert [value for poll in polls for _, value in poll.records] == ["a-0", "unanswered", "a-1"]
