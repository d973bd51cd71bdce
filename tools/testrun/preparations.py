"""Runs preparations of suites in the background, one after another, beside the first suites.

One at a time and at a low priority: the suites they run beside keep the processors.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.testrun import processes
from tools.testrun.processes import Ended, Surroundings
from tools.testrun.subreaper import CANNOT_START
from tools.testrun.suites import Preparation

TAIL_LINES: Final = 40


class Preparations:
    """A thread that runs each preparation; suites wait for those they name."""

    def __init__(
        self, wanted: Sequence[Preparation], around: Surroundings, directory: Path
    ) -> None:
        self._wanted = wanted
        self._around = Surroundings(around.root, around.environment)
        self._directory = directory
        self._ended: dict[str, Ended] = {}
        self._is_over = {preparation.name: threading.Event() for preparation in wanted}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin with the first."""
        self._thread.start()

    def log(self, name: str) -> Path:
        """Where its output is."""
        return self._directory / f"{name}-prepare.log"

    def is_over(self, name: str) -> bool:
        """Whether a suite need not wait for it any more."""
        return self._is_over[name].is_set()

    def wait(self, name: str) -> Ended:
        """Wait for its end."""
        self._is_over[name].wait()
        return self._ended[name]

    def tail(self, name: str) -> str:
        """The last lines of its output."""
        lines = self.log(name).read_text("utf-8", errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    def stop(self) -> None:
        """End the one that runs, start no other, and wait for that."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        for preparation in self._wanted:
            if self._stop.is_set():
                return
            log = self.log(preparation.name)
            log.unlink(missing_ok=True)
            # Stays so where the disk takes no log: a suite must never wait for ever.
            self._ended[preparation.name] = Ended(CANNOT_START, 0.0)
            try:
                self._ended[preparation.name] = processes.run(
                    preparation.command,
                    self._around,
                    log,
                    limit_s=preparation.limit_minutes * 60,
                    stop=self._stop,
                    background=True,
                )
            finally:
                self._is_over[preparation.name].set()
