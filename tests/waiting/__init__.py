"""Waits of the tests: for facts, with deadlines in units of the machine's speed.

`wait_for` reads a fact (a ready file, a metric, a log line, a znode, an offset) until it holds.
Its deadline is a budget of *machine seconds*: a second of an idle machine as fast as the one the
budgets were chosen on. On a slower machine, or while others take the processor or the disk, the
budget is spent more slowly. On time-out the error shows the last state of the fact, what the
machine and every process under test did meanwhile, their last log lines and their task dumps, so
that a wait that was starved and a wake-up that was lost can be told apart from one failure.

Where a library takes a time limit of its own, `seconds` converts a budget into wall seconds.
One attempt inside a `read` gets `ATTEMPT_S`, or less: the wait around it asks again.

    offset = wait_for("the end offset of t-0", lambda: wire.end("t"), until=lambda end: end == 10)
    assert producer.flush(seconds(ANSWER)) == 0
"""

from tests.waiting.facts import NotInTimeError, wait_for, wait_for_async
from tests.waiting.machine import ANSWER, ATTEMPT_S, RUN, SETTLE, START, seconds
from tests.waiting.processes import forget, watch, watch_loop

__all__ = [
    "ANSWER",
    "ATTEMPT_S",
    "RUN",
    "SETTLE",
    "START",
    "NotInTimeError",
    "forget",
    "seconds",
    "wait_for",
    "wait_for_async",
    "watch",
    "watch_loop",
]
