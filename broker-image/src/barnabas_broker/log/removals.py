"""Files and directories that were given up, until they are removed.

Whatever is given up is renamed at once, so that nothing finds it any more, and removed when
``file.delete.delay.ms`` is over. Readers hold what they read, so the delay is a custom and no
need: where a disk is full it is not kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from barnabas_broker.log.files import remove_files, remove_tree
from barnabas_broker.log.health import DirectoryHealth, Health

_log = logging.getLogger(__name__)

Work = Callable[[], object]


class _Removal(NamedTuple):
    """What to remove once ``due_ms`` has come, or as soon as room is missing."""

    due_ms: int
    work: Work
    health: DirectoryHealth

    def is_due(self, now_ms: int) -> bool:
        return self.health.state is Health.FULL or self.due_ms <= now_ms


class Removals:
    """What waits to be removed; the removals themselves block, and are handed out."""

    def __init__(self) -> None:
        self._waiting: list[_Removal] = []

    def add_tree(self, path: Path, health: DirectoryHealth, due_ms: int) -> None:
        """Have a directory removed, with all that is in it."""
        self._waiting.append(_Removal(due_ms, partial(remove_given_up, path), health))

    def add_files(self, paths: Sequence[Path], health: DirectoryHealth, due_ms: int) -> None:
        """Have files removed."""
        self._waiting.append(_Removal(due_ms, partial(_remove_files, paths), health))

    def take_due(self, now_ms: int) -> list[Work]:
        """The removals whose time has come, each to be called once; cheap to ask often."""
        due = [removal for removal in self._waiting if removal.is_due(now_ms)]
        self._waiting = [removal for removal in self._waiting if not removal.is_due(now_ms)]
        return [removal.work for removal in due]


def remove_given_up(path: Path) -> None:
    """Remove a directory, if it is still there. Blocks; a failure is logged."""
    try:
        remove_tree(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        _log.warning("Failed to delete an unused log: %s: %s", path, error.strerror or error)


def _remove_files(paths: Sequence[Path]) -> None:
    try:
        remove_files(paths)
    except OSError as error:
        _log.warning("Failed to delete segment files: %s", error)
