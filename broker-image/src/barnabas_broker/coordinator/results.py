"""What one step of a coordinator's core asks its shell to do.

A step decides and changes nothing that must survive a crash. What must is in `records`: the shell
appends them, has the core replay them, and then hands out `answers`. Where the append fails it
replays nothing, and hands out the answers that `refuse` makes of the error instead.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode

R = TypeVar("R")

Waiter = Hashable
"""What waits for an answer; the core hands it back and knows nothing of it."""


class Producer(NamedTuple):
    """The producer in whose transaction records are written."""

    id: int
    epoch: int


@dataclass(slots=True)
class CoordinatorResult(Generic[R]):
    """One step: `answers` are for now, or for when the records are appended.

    With a `producer` the records are part of its open transaction, and count when that is
    committed. `orders` are what the shell has to do once the records count; the core defines
    their kind.
    """

    now_ms: int
    records: list[R] = field(default_factory=list)
    answers: list[tuple[Waiter, object]] = field(default_factory=list)
    refuse: "Callable[[ErrorCode, CoordinatorResult[R]], None] | None" = None
    """Undoes, and answers into another result, when the records could not be appended.

    Without it the answers go out as they are: no waiter depends on the records.
    """
    follow: "Callable[[CoordinatorResult[R]], None] | None" = None
    """What else happens, with a result of its own, once the records were replayed."""
    producer: Producer | None = None
    orders: list[object] = field(default_factory=list)

    def answer(self, waiter: Waiter, response: object) -> None:
        """Have `waiter` answered."""
        self.answers.append((waiter, response))

    def refused(self, code: ErrorCode) -> "CoordinatorResult[R]":
        """What to do instead, when appending the records failed with `code`."""
        instead: CoordinatorResult[R] = CoordinatorResult(self.now_ms)
        if self.refuse is None:
            instead.answers = self.answers
            assert not instead.records, violated("a refused result has no records")
        else:
            self.refuse(code, instead)
        return instead
