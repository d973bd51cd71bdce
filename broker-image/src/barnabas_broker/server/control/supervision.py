"""A broker's side of its supervisor: starts it, and sends it the session to close.

`supervisor` describes what the supervisor does and which process is its parent.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Final

from barnabas_broker.server.control import supervisor

log = logging.getLogger(__name__)

INIT: Final = 1


class Supervision:
    """The way to the supervisor of this process; it stays open for as long as the process lives.

    What happens to the supervisor does not touch the broker: without one its session ends by its
    timeout.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sent = True
        self._line = supervisor.NONE
        self._lock = threading.Lock()  # Over what was said last: calls come from any thread.

    @classmethod
    def begin(cls, shape: str, *, as_parent: bool | None = None) -> Supervision:
        """Start the supervisor, before there are threads; returns in the broker's process.

        `shape` is the form of what the supervisor logs (`barnabas.log.format`). It becomes this
        process's parent where that is process 1 (or `as_parent` says so), else its child.
        """
        parent = os.getpid() == INIT if as_parent is None else as_parent
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        # None may arrive between the fork and the moment the supervisor can hand it on.
        numbers = (*supervisor.FORWARDED, signal.SIGCHLD)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        pid = os.fork()
        if (pid != 0) == parent:
            _become_supervisor(theirs, child=pid, shape=shape)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return cls(ours.detach())

    def secure(self, material: bytes) -> None:
        """Have it connect by TLS only, with this. It goes by way of memory, and of no disk."""
        descriptor = os.memfd_create("tls of the supervisor", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, material)
            with socket.socket(fileno=os.dup(self._descriptor)) as link, self._lock:
                line = f"{self._line}\n".encode()
                self._sent = socket.send_fds(link, [line], [descriptor]) == len(line)
        except OSError:
            self._sent = False
        finally:
            os.close(descriptor)
        self._warn_unless_sent()

    def hand_over(self, session: int, password: bytes, timeout_ms: int, hosts: str) -> None:
        """This is the session to end when this process has ended. Any thread, never blocks."""
        self._send(f"{session % (1 << 64):x} {password.hex()} {timeout_ms} {hosts}")

    def forget(self) -> None:
        """There is no session to end any more. Any thread, never blocks."""
        self._send(supervisor.NONE)

    def _send(self, line: str) -> None:
        if not self._sent:
            return
        data = f"{line}\n".encode()
        try:
            with self._lock:
                self._line = line
                self._sent = os.write(self._descriptor, data) == len(data)
        except OSError:
            self._sent = False
        self._warn_unless_sent()

    def _warn_unless_sent(self) -> None:
        if not self._sent:
            log.warning(
                "Session supervisor ended: a crash of this broker is noticed when its ZooKeeper "
                "session times out"
            )


def _become_supervisor(link: socket.socket, *, child: int, shape: str) -> None:
    """Go on as the other program, in an interpreter that loads nothing it does not need."""
    link.set_inheritable(True)
    command = [sys.executable, "-I", "-S", "-B", str(Path(supervisor.__file__))]
    try:
        os.execv(sys.executable, [*command, str(link.fileno()), str(child), shape])  # noqa: S606
    finally:  # It cannot be started; a broker that is this process's child must not live on.
        if child:
            os.kill(child, signal.SIGKILL)
        os._exit(1)
