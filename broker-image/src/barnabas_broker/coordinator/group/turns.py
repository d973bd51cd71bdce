"""What one step of the coordinator's core asks its shell to do.

A step decides and changes nothing that must survive a crash. What must is in `records`: the shell
appends them, has the core replay them, and then hands out `answers`. Where the append fails it
replays nothing, and hands out the answers that `refuse` makes of the error instead.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from barnabas_broker.coordinator.group.records import Record
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.schema import Struct

Waiter = Hashable
"""Whoever waits for an answer; the core hands it back and knows nothing of it."""


@dataclass(slots=True)
class Turn:
    """One step: `answers` are for now, or for when the records are appended."""

    now_ms: int
    records: list[Record] = field(default_factory=list)
    answers: list[tuple[Waiter, Struct]] = field(default_factory=list)
    refuse: "Callable[[ErrorCode, Turn], None] | None" = None
    """Undoes, and answers into another turn, when the records could not be appended.

    Without it the answers stand: nobody who waits depends on the records.
    """

    def answer(self, waiter: Waiter, response: Struct) -> None:
        """Have `waiter` told."""
        self.answers.append((waiter, response))

    def refused(self, code: ErrorCode) -> "Turn":
        """What to do instead, when appending the records failed with `code`."""
        instead = Turn(self.now_ms)
        if self.refuse is None:
            instead.answers = self.answers
        else:
            self.refuse(code, instead)
        return instead
