"""A check before every call of a pass: its deadline, the operator's end, and the leadership.

A thread cannot be stopped from outside. Every network call has a deadline of its own, so a pass
that checks before each call ends soon after its deadline, or after the operator was asked to stop.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

PORT = TypeVar("PORT")

PASS_DEADLINE_S: Final = 120.0
# Harmless without leadership.
READS: Final = frozenset({"get", "list"})


class PassAbortedError(Exception):
    """A pass was ended before its next call; what it has done so far stays."""


class Stop(Protocol):
    """Whether the operator was asked to stop."""

    asked: bool


class Deadline:
    """The deadline of one pass, by the monotonic clock."""

    def __init__(self, at: float, stop: Stop, leads: Callable[[], bool] = lambda: True) -> None:
        self._at = at
        self._stop = stop
        self._leads = leads

    def check(self, call: str) -> None:
        """Raises PassAbortedError."""
        if self._stop.asked:
            raise PassAbortedError(f"the operator stops; {call} was not called")
        if time.monotonic() >= self._at:
            text = f"reconciliation exceeded its deadline of {PASS_DEADLINE_S:.0f} s before {call}"
            raise PassAbortedError(text)
        if call not in READS and not self._leads():
            raise PassAbortedError(f"this operator is not the leader; {call} was not called")


class _Guarded:
    """Any port with a check before each of its methods."""

    def __init__(self, port: object, check: Callable[[str], None]) -> None:
        self._port = port
        self._check = check

    def __getattr__(self, name: str) -> Any:
        """The port's method with the check before it."""
        method = getattr(self._port, name)

        @functools.wraps(method)
        def checked(*arguments: Any, **named: Any) -> Any:
            self._check(name)
            return method(*arguments, **named)

        return checked


def guarded(port: PORT, check: Callable[[str], None]) -> PORT:
    """The port with a check, given the method's name, before every call."""
    return cast(PORT, _Guarded(port, check))
