"""The shared memory of responses that nobody reads."""

from barnabas_broker.server.transport.counters import Cause
from barnabas_broker.server.transport.send_buffers import SendBuffers


class Reader:
    """A connection; remembers why it was dropped."""

    def __init__(self) -> None:
        self.refused: list[Cause] = []

    def refuse(self, cause: Cause, reason: str) -> None:
        self.refused.append(cause)


def test_the_one_that_waits_longest_is_dropped_beyond_the_budget() -> None:
    """Others keep what they have; the sum is within the budget again."""
    memory = SendBuffers(budget=100)
    oldest, middle, newest = Reader(), Reader(), Reader()
    for reader in (oldest, middle, newest):
        memory.stalled(reader, 40)
    assert (oldest.refused, middle.refused, newest.refused) == ([Cause.OUTPUT_MEMORY], [], [])
    assert memory.held == 80


def test_a_reading_client_is_no_longer_stalled() -> None:
    """And is among the youngest when it stalls again."""
    memory = SendBuffers(budget=100)
    first, second = Reader(), Reader()
    memory.stalled(first, 60)
    memory.stalled(second, 40)
    memory.drained(first)
    assert memory.held == 40
    memory.stalled(first, 61)
    assert (first.refused, second.refused) == ([], [Cause.OUTPUT_MEMORY])


def test_one_response_may_be_larger_than_the_budget() -> None:
    """A client that is alone is never dropped for what it was answered."""
    memory = SendBuffers(budget=100)
    reader = Reader()
    memory.stalled(reader, 1000)
    assert reader.refused == []
