"""Names of brokers, which are there or not as a test says.

A small library (names.c, compiled with gcc when it is first needed) is preloaded into the brokers
and stands before their lookups of names under ``.brokers.test``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("names.c")


class Names:
    """The names ``broker-N.brokers.test``; start processes with :attr:`environment` added."""

    def __init__(self, directory: Path) -> None:
        self._away = directory / "away"
        self._away.mkdir(parents=True)
        self._library = directory / "names.so"
        command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(self._library)]
        subprocess.run([*command, str(_SOURCE), "-ldl"], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment."""
        return {"LD_PRELOAD": str(self._library), "NAMES_AWAY": str(self._away)}

    def of(self, broker: int) -> str:
        """The name of a broker."""
        return f"broker-{broker}.brokers.test"

    def move(self, broker: int, address: str) -> None:
        """Answer with another address for a broker from now on."""
        (self._away / f"{self.of(broker)}.at").write_text(address)

    @contextmanager
    def without(self, broker: int) -> Iterator[None]:
        """While the block runs nobody answers for the name of a broker."""
        file = self._away / self.of(broker)
        file.touch()
        try:
            yield
        finally:
            file.unlink()
