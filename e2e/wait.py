"""Waits for facts that kubectl reads: `wait_for` of tests.waiting, retrying failed commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from e2e.commands import CommandError
from tests import waiting
from tests.waiting import SETTLE, NotInTimeError

__all__ = ["NotInTimeError", "wait_for"]

Fact = TypeVar("Fact")


def wait_for(
    what: str,
    read: Callable[[], Fact],
    *,
    until: Callable[[Fact], object] = bool,
    within: float = SETTLE,
    show: Callable[[], object] = str,
) -> Fact:
    """What `read` returns, once `until` holds for it; a command that fails is a fact to come.

    `within` is in machine seconds. Raises NotInTimeError with the last state and `show()`.
    """
    return waiting.wait_for(
        what, read, until=until, within=within, retry=(CommandError,), show=show
    )
