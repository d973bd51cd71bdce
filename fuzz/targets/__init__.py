"""The targets: each module is one, its `check` takes any bytes and raises where a promise breaks.

`seeds` gives sound inputs to start from: bytes that only chance would have to find otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

#: Inputs kept for what they reach, and those that broke a promise, by target.
CORPUS: Final = Path(__file__).parents[1] / "corpus"
FINDINGS: Final = Path(__file__).parents[1] / "findings"

NAMES: Final = (
    "bearer",
    "compression",
    "coordination",
    "directory",
    "framing",
    "login",
    "produce",
    "records",
    "request",
    "response",
    "segment",
    "settings",
    "tls",
    "znodes",
)


@dataclass(frozen=True, slots=True)
class Target:
    """Something that reads bytes, by name."""

    name: str
    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def target(name: str) -> Target:
    """The target of a name in `NAMES`; it is imported when it is asked for."""
    module = import_module(f"fuzz.targets.{name}")
    return Target(name, module.check, module.seeds)
