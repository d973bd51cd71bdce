"""Runs one command in a session of its own: passes its output through, ends it at a limit.

With it ends all that it has started (`subreaper`), and nothing that somebody else has.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Final

from tools.testrun import subreaper

_TICK_S: Final = 0.1
_CHUNK: Final = 1 << 16
# What a process gets to end in after a signal, before the next and harder one.
TERM_TIMEOUT_S: Final = 10.0
INTERRUPT_TIMEOUT_S: Final = 30.0
# Not as a module: the command's directory need not be the one with these sources.
_SUBREAPER: Final = (sys.executable, "-P", subreaper.__file__)
# A prefix, as a priority that is set later misses the children that were started before.
_BACKGROUND: Final = ("nice", "-n", "10")


class StoppedError(Exception):
    """The user or the system asks the runner to end, by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stop_signals() -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP raise StoppedError in the main thread."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise StoppedError(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    status: int
    seconds: float
    timed_out: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where commands run: directory, environment, and where their output is shown, if it is."""

    root: Path
    environment: Mapping[str, str]
    echo: BinaryIO | None = None


def run(
    command: Sequence[str],
    around: Surroundings,
    log: Path,
    *,
    limit_s: float,
    stop: threading.Event | None = None,
    background: bool = False,
) -> Ended:
    """Run a command to its end, its limit or until `stop` is set; its output is appended to `log`.

    At the limit it gets SIGTERM, then SIGKILL. Raises StoppedError on a signal to the runner, when
    all has ended that the command started.
    """
    began = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = subprocess.Popen(
            [*(_BACKGROUND if background else ()), *_SUBREAPER, str(TERM_TIMEOUT_S), *command],
            cwd=around.root,
            env=dict(around.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        copier = threading.Thread(target=_copy, args=(process, file, around.echo), daemon=True)
        try:
            copier.start()
            timed_out, stopped = _wait(process, began + limit_s, stop)
            end(process)
        except StoppedError:
            end(process, first=signal.SIGINT)
            raise
        finally:
            copier.join(TERM_TIMEOUT_S)
    return Ended(process.returncode, time.monotonic() - began, timed_out, stopped)


def _wait(
    process: subprocess.Popen[bytes], give_up_at: float, stop: threading.Event | None
) -> tuple[bool, bool]:
    """Wait for the end; whether the limit came first, and whether `stop` did."""
    while process.poll() is None:
        if time.monotonic() > give_up_at:
            return True, False
        if stop is not None and stop.is_set():
            return False, True
        time.sleep(_TICK_S)
    return False, False


def _copy(process: subprocess.Popen[bytes], log: BinaryIO, echo: BinaryIO | None) -> None:
    assert process.stdout is not None
    with process.stdout as output:
        while chunk := os.read(output.fileno(), _CHUNK):
            try:
                _show(chunk, log, echo)
            except ValueError:  # The log is closed: what writes has left the group and outlives it.
                return


def _show(chunk: bytes, log: BinaryIO, echo: BinaryIO | None) -> None:
    for target in (log, echo):
        if target is not None:
            target.write(chunk)
            target.flush()


def end(process: subprocess.Popen[bytes], first: int = signal.SIGTERM) -> None:
    """End a command and all that it has started: `first`, SIGTERM, SIGKILL, each with its time.

    A signal to the runner meanwhile begins the next step, and is raised when all has ended.
    """
    signalled = None
    steps = [(first, INTERRUPT_TIMEOUT_S)] if first != signal.SIGTERM else []
    # A command that ends by SIGTERM may leave others, which are given as long again.
    steps += [(signal.SIGTERM, 2 * TERM_TIMEOUT_S), (signal.SIGQUIT, TERM_TIMEOUT_S)]
    for number, timeout_s in steps:
        try:
            if process.poll() is None:
                process.send_signal(number)
                process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            continue
        except StoppedError as stopped:
            signalled = stopped
    process.kill()
    process.wait()
    if signalled is not None:
        raise signalled
