"""One run at a time in a checkout: two would write the same `.cache/test-run`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NAME: Final = "lock"


class RunInProgressError(Exception):
    """Another run holds the checkout; the text names its process."""


@contextmanager
def checkout_lock(directory: Path) -> Iterator[None]:
    """Hold the directory of the run's files until the end, or until this process is gone."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / NAME).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise RunInProgressError(
                f"another test run is in progress in this checkout, process {file.read().strip()};"
                " wait for its end, or run in another clone"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
