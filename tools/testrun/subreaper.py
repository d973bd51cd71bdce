"""Runs a command, and ends with it everything that the command has started.

    python subreaper.py SECONDS COMMAND [ARGUMENT ...]

A process group holds less than that: a program may have a session of its own. This process is the
subreaper of its descendants (PR_SET_CHILD_SUBREAPER in prctl(2)): one whose parent ends becomes its
child. So all that the command has started is found below it, and nothing else is. What the command
leaves behind gets SIGTERM, and so many seconds later SIGKILL. SIGINT and SIGTERM are passed to the
command's group, SIGQUIT kills everything at once. The status is the command's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

import psutil

CANNOT_START: Final = 127
_TICK_S: Final = 0.1
_PR_SET_CHILD_SUBREAPER: Final = 36


def main(timeout_s: float, command: list[str]) -> NoReturn:
    """Run the command to its end, then end what is left of it."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    group: list[int] = []
    early: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        if not group:
            early.append(number)
            return
        with suppress(ProcessLookupError):
            os.killpg(group[0], number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    signal.signal(signal.SIGQUIT, lambda _number, _frame: _signal_rest(signal.SIGKILL))
    try:
        started = subprocess.Popen(command, process_group=0)
    except OSError as error:
        sys.stdout.write(f"barnabas: cannot run {command[0]}: {error}\n")
        sys.exit(CANNOT_START)
    group.append(started.pid)
    for each in early:
        forward(each, None)
    status = _reap_until(started.pid)
    _end_rest(timeout_s)
    if status < 0:
        with suppress(OSError):  # SIGKILL has no handler to reset.
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def _reap_until(command: int) -> int:
    """Wait for the command; returns its status. Others that end meanwhile have no other parent."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            return os.waitstatus_to_exitcode(status)


def _end_rest(timeout_s: float) -> None:
    """End all descendants: SIGTERM first, then SIGKILL, also for what they start meanwhile."""
    kill_at = time.monotonic() + timeout_s
    give_up_at = kill_at + timeout_s
    _signal_rest(signal.SIGTERM)
    while _runs_rest() and time.monotonic() < give_up_at:
        if time.monotonic() > kill_at:
            _signal_rest(signal.SIGKILL)
        time.sleep(_TICK_S)


def _runs_rest() -> bool:
    """Whether there are descendants; those that have ended are reaped."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return bool(psutil.Process().children())


def _signal_rest(number: int) -> None:
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # It has ended, or is another user's.
            each.send_signal(number)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
