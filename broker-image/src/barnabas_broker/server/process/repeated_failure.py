"""How often a failure that goes on is logged: attempts 1, 2, 4, 8 and so on, then each 64th.

What is retried every second may fail for hours, and then its line must neither fill the log nor be
missing from the part of it that an operator reads.
"""

import logging
from typing import Final

EACH: Final = 64


class RepeatedFailure:
    """The attempts at one thing that failed since it last succeeded."""

    __slots__ = ("attempts",)

    def __init__(self) -> None:
        self.attempts = 0

    def failed(self) -> int:
        """Count one more; returns the level to log it at."""
        self.attempts += 1
        is_power_of_two = self.attempts & (self.attempts - 1) == 0
        logged = self.attempts % EACH == 0 or (self.attempts < EACH and is_power_of_two)
        return logging.WARNING if logged else logging.DEBUG

    def over(self) -> None:
        """It has succeeded: the next failure is the first."""
        self.attempts = 0
