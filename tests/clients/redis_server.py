"""A Redis on a socket file of its own, for recipes that keep their offsets there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import START, seconds


class RedisServer:
    """Debian's `redis-server`, without a port and without files."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "redis.sock"
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """What clients connect to."""
        return f"unix://{self.socket}"

    def __enter__(self) -> Self:
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", ""]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.socket.parent,
            start_new_session=True,
        )
        said = []
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said.append(line)
            if "ready to accept connections" in line.lower():
                return self
        self._end()
        raise RuntimeError(f"redis-server did not start:\n{''.join(said)}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.terminate()
        try:
            self._process.wait(seconds(START))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()
