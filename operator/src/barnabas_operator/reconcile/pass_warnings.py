"""Warnings of passes: each pass finds again what still holds, and logs only what is new."""

from __future__ import annotations


class PassWarnings:
    """The warnings of one cluster's last pass, and of the one that runs.

    What a pass no longer warns of is new when it comes back.
    """

    def __init__(self) -> None:
        self._last: set[str] = set()
        self._now: set[str] = set()

    def begin(self) -> None:
        """A pass begins."""
        self._last, self._now = self._now, set()

    def is_new(self, text: str) -> bool:
        """Whether to log a warning: neither this pass nor the last one did."""
        known = text in self._last or text in self._now
        self._now.add(text)
        return not known
