"""Waits for a condition: asks again until it holds or its time is up. Nothing else here sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from e2e.commands import CommandError

Found = TypeVar("Found")
PAUSE_S: Final = 0.5


class NotInTimeError(Exception):
    """What was waited for, for how long, and what was so instead."""


def wait_for(
    what: str,
    condition: Callable[[], Found | None],
    *,
    within_s: float,
    told: Callable[[], str] = str,
) -> Found:
    """What `condition` returns once that is neither None nor False.

    A command that fails is a condition that does not hold yet. Raises NotInTimeError with what the
    last attempt said and `told()`, the state of things in words.
    """
    deadline = time.monotonic() + within_s
    last = ""
    while True:
        try:
            found = condition()
        except CommandError as error:
            found, last = None, str(error)
        if found is not None and found is not False:
            return found
        if time.monotonic() > deadline:
            details = "\n".join(text for text in (last, told()) if text)
            raise NotInTimeError(f"not within {within_s:.0f} s: {what}\n{details}")
        time.sleep(PAUSE_S)
