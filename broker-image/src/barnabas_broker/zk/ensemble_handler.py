"""kazoo's threads, and the timeout of connections to a member of the ensemble.

kazoo waits for a connection as long as a session lasts, and for the first answer on it that long
over the number of members. One silence then costs the session: a member whose machine is gone
answers no SYN, and a ZooKeeper that has bound its port but set nothing up yet (some 30 ms of
its start) never answers what it is asked then, though it accepts the connection.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

TIMEOUT_MIN_S: Final = 2.0
"""How long the first silence is borne. Each one doubles it until a member answers, so that an
ensemble that is only slow is waited for; never beyond what kazoo would wait."""

TIMEOUT_MAX_S: Final = 64.0


class EnsembleHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types.
    """For one client, which has one connection at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._timeout_s = TIMEOUT_MIN_S
        #: called before anything is sent or received; may wait
        self.before_each: Callable[[], object] = bool
        #: the connection without an answer yet
        self._connecting: socket.socket | None = None

    def create_connection(
        self,
        address: tuple[str, int],
        hostname: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> socket.socket:
        """Connect, within `timeout` seconds and the timeout of an attempt; raises OSError."""
        try:
            self._connecting = self.connect(address, hostname, self._bounded(timeout), **options)
        except TimeoutError:
            self._was_silent()
            raise
        return self._connecting

    def connect(
        self, address: tuple[str, int], hostname: str | None, timeout: float, **options: Any
    ) -> socket.socket:
        """A connection on which nothing was sent yet; raises OSError."""
        connection: socket.socket = super().create_connection(address, hostname, timeout, **options)
        return connection

    def select(
        self, readable: list[Any], writable: list[Any], failed: list[Any], timeout: float | None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """What is ready of these; the first bytes on a connection are awaited for one attempt."""
        self.before_each()
        if self._connecting is None or self._connecting not in readable:
            return self._select(readable, writable, failed, timeout)
        ready = self._select(readable, writable, failed, self._bounded(timeout))
        if ready[0]:
            self._connecting = None
            self._timeout_s = TIMEOUT_MIN_S
        else:
            self._was_silent()
        return ready

    def _select(self, *args: Any) -> tuple[list[Any], list[Any], list[Any]]:
        ready: tuple[list[Any], list[Any], list[Any]] = super().select(*args)
        return ready

    def _bounded(self, timeout: float | None) -> float:
        return self._timeout_s if timeout is None else min(timeout, self._timeout_s)

    def _was_silent(self) -> None:
        self._timeout_s = min(2 * self._timeout_s, TIMEOUT_MAX_S)
