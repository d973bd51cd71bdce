"""What old notes and habits call a setting, and what it is called today."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, or None where nothing is close."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)), None)
