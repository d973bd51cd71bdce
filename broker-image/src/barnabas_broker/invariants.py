"""Invariants in the code: how an assertion is written, and what is logged of one that fails.

An invariant is true whatever clients, peers, ZooKeeper and disks do: one that does not hold is a
bug of ours, and to go on with it may lose or alter records. It is written

    assert high_watermark <= log_end, violated("the high watermark is within the log")

and `violated` is called only when it does not hold. That is before the AssertionError is raised, so
that no `except` on the way can swallow it: in a broker's process (`server.process.fatal_fault`) the
call logs the state of the function that failed and ends the process. Everywhere else, in tests and
in tools, the AssertionError follows, and observers (`on_violation`) know of it also where
something catches it.
"""

import reprlib
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

VALUE_CHARACTERS: Final = 300
"""How much of each value is logged."""
VALUES_MAX: Final = 200
"""How many values are logged."""

_WATCHERS: Final[list[Callable[[str, str], object]]] = []


@contextmanager
def on_violation(watcher: Callable[[str, str], object]) -> Iterator[None]:
    """Within the block `watcher` is called with each violated invariant and the state it has."""
    _WATCHERS.append(watcher)
    try:
        yield
    finally:
        _WATCHERS.remove(watcher)


def violated(invariant: str) -> str:
    """Call the watchers as an invariant does not hold; returns the message of the assertion."""
    if _WATCHERS:
        try:
            state = _state(sys._getframe(1))
        except Exception as error:  # Whatever it is, the watchers are called.
            state = f"its state cannot be described: {error!r}"
        for watcher in tuple(_WATCHERS):
            watcher(invariant, state)
    return f"invariant violated: {invariant}"


class _Values(reprlib.Repr):
    """Values, each in one short line; of bytes only how many, for they are users' data."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxother, self.maxstring = 3, VALUE_CHARACTERS, VALUE_CHARACTERS
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 8

    def repr_bytes(self, value: bytes | bytearray, _level: int) -> str:
        return f"<{type(value).__name__} of {len(value)} bytes>"

    repr_bytearray = repr_bytes


_VALUES: Final = _Values()


def _state(frame: FrameType) -> str:
    """The stack down to a frame, its variables, and what its `self` is made of."""
    lines = [line.rstrip("\n") for line in traceback.format_stack(frame)]
    values = [*frame.f_locals.items()]
    values += [(f"self.{name}", value) for name, value in _parts(frame.f_locals.get("self"))]
    for name, value in values[:VALUES_MAX]:
        lines.append(f"  {name} = {_VALUES.repr(value)[:VALUE_CHARACTERS]}")
    return "\n".join(lines)


def _parts(subject: object) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, those in slots too."""
    names = [name for kind in type(subject).__mro__ for name in getattr(kind, "__slots__", ())]
    names += getattr(subject, "__dict__", ())
    missing = object()
    for name in names:
        value = getattr(subject, name, missing)
        if value is not missing:
            yield name, value
