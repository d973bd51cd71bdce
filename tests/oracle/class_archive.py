"""Class data of a server's JVM, kept from one start to the next.

Half of what a broker or ZooKeeper takes to start is to read and check its classes. The JVM can keep
them as it has them in memory (AppCDS): the first server that stops in order writes an archive, and
later ones of the same class path map it. Where an archive does not fit, the JVM goes on without.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path
from typing import Final

from tests.oracle.java_host import CACHE, java_release

_numbers: Final = itertools.count()


class ClassArchive:
    """The archive of a main class on a class path."""

    def __init__(self, main_class: str, classpath: str) -> None:
        digest = hashlib.sha256(f"{java_release()}\0{classpath}".encode()).hexdigest()
        self.file = CACHE / f"{main_class}-{digest[:16]}.jsa"
        self._written: Path | None = None

    def flag(self) -> str:
        """What has a JVM use the archive, or write it at its end where there is none."""
        if self.file.exists():
            return f"-XX:SharedArchiveFile={self.file}"
        CACHE.mkdir(parents=True, exist_ok=True)
        # Several servers may start before the first one has stopped.
        self._written = self.file.with_suffix(f".{os.getpid()}-{next(_numbers)}")
        return f"-XX:ArchiveClassesAtExit={self._written}"

    def keep(self) -> None:
        """After the JVM has ended in order: what it wrote is for the next one."""
        if self._written is not None and self._written.exists():
            self._written.replace(self.file)
        self._written = None
