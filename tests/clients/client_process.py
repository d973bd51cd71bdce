"""A client in a process of its own, and what it has written down, a line of JSON each.

In a process because librdkafka's threads may lock each other up when a broker goes (its issues
5476 and 5304): a thread of this kind would take pytest with it, as the binding holds the
interpreter meanwhile. A client is told to end by the end of its standard input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import forget, watch


class ClientProcess:
    """The other side of a client: starts it, ends it, and kills it where it hangs."""

    def __init__(self, scenario: Path, module: str, *arguments: str) -> None:
        """`scenario` is the file for its lines, `module` what `python -m` runs."""
        self.name = scenario.stem
        self._scenario = scenario
        with scenario.open("wb") as lines:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=lines
            )
        watch(self.name, self._process.pid)

    def reported(self) -> list[dict[str, Any]]:
        """Its lines so far."""
        return reported(self._scenario)

    def lines(self) -> int:
        """How many there are."""
        return self._scenario.read_bytes().count(b"\n")

    def end(self, timeout_s: float) -> bool:
        """Have it come to its end; False where it had to be killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        forget(self._process.pid)
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        assert status == 0, f"{self.name} failed: {status}"
        return True

    def kill(self) -> None:
        """End it now; nothing happens where it has ended."""
        forget(self._process.pid)
        self._process.kill()
        self._process.communicate()


def reported(scenario: Path) -> list[dict[str, Any]]:
    """The lines of a client, but for the one that it is writing, or was killed at."""
    lines = scenario.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def tell(**what: Any) -> None:
    """Write a line down, on the client's side."""
    print(json.dumps(what), flush=True)
