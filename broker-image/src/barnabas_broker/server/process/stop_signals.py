"""What SIGTERM and SIGINT do to a broker's process, from its first line to its last.

Default actions of signals are not enough: process 1 of a container gets no signal that
it has no handler for, so that a broker that is stopped while it loads its modules would go on,
register, be given partitions, and be killed. There is a handler at all times, and it is always
Python's own: the event loop puts the default back when it is closed.

This module is loaded before all others, so it imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from types import FrameType

NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)


def end_at_once() -> None:
    """Until there is more to it, a stop ends the process: nothing was begun, so it is a clean one.

    Not by an exception, which an import or a destructor in its way may swallow.
    """
    _handle(_end)


def call_on_stop(loop: AbstractEventLoop, stop: Callable[[], None]) -> None:
    """From now on have the loop call `stop`."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    _handle(handler)


def ignore() -> None:
    """The process is about to end, by a signal or by itself; another signal changes nothing.

    This is what stays when the interpreter takes its handlers away.
    """
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in NUMBERS:
        signal.signal(number, handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
