"""How full the volumes of log directories are, asked for in threads.

A disk that hangs does not answer, and nothing else must wait for it: a caller gets what
has been answered in time. There is one question for each directory at a time, however many ask.
"""

import asyncio
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Final

from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.directory import VolumeUsage
from barnabas_broker.server.process.directory_threads import DirectoryThreads

DEADLINE_S: Final = 2.0
"""How long a disk has to answer what takes microseconds."""


class Volumes:
    """Lives on the event loop."""

    def __init__(self) -> None:
        self._threads = DirectoryThreads("volume", 1)
        self._asked: dict[Path, Future[VolumeUsage | None]] = {}

    async def usage(self, logs: LogDirectories) -> dict[Path, VolumeUsage | None]:
        """Of each log directory, None where it cannot be used; without those that are late."""
        asked = {path: asyncio.wrap_future(self._ask(logs, path)) for path in logs.paths}
        await asyncio.wait(asked.values(), timeout=DEADLINE_S)
        return {path: answer.result() for path, answer in asked.items() if answer.done()}

    def _ask(self, logs: LogDirectories, path: Path) -> "Future[VolumeUsage | None]":
        asked = self._asked.get(path)
        if asked is None or asked.done():
            asked = self._asked[path] = self._threads.submit(path, partial(logs.volume, path))
        return asked

    def close(self) -> None:
        """Wait for what was asked, and end the threads. Blocks."""
        self._threads.close()
