"""Commands that take a while, shown as they go on, and ended with all that they started.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

# Ctrl-C, the end of the terminal, and what `make` passes on.
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TICK_S: Final = 1.0
# Where nobody watches, a line so often.
QUIET_TICK_S: Final = 10.0
# How long a command has to end after Ctrl-C before it is killed.
ENDING_S: Final = 5.0


# How deep in `held` this is, and what has arrived meanwhile.
_holding: list[bool] = []
_held: list[int] = []


class StepError(Exception):
    """A command failed; the text holds its output."""


def say(text: str) -> None:
    """Print one line of progress."""
    sys.stderr.write(f"barnabas: {text}\n")
    sys.stderr.flush()


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt once for the first of the signals, and ignore all after it.

    So what cleans up inside is not interrupted in turn; `ignore` says that it begins. A signal that
    was ignored before stays so. One that is blocked (see `block`) arrives with `unblock`.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _holding:
            _held.append(number)
            return
        ignore()
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Let an interrupt wait until what is made here is known to whoever cleans up."""
    _holding.append(True)
    try:
        yield
    finally:
        _holding.pop()
        if _held and not _holding:
            _held.clear()
            ignore()
            raise KeyboardInterrupt


def ignore() -> None:
    """Ignore the signals from here on, to the end of `one_interrupt`."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def block() -> None:
    """Hold the signals back, also in the program that replaces this one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def unblock() -> None:
    """Let them arrive, those as well that have waited."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def run(title: str, command: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path) -> None:
    """Run a command and show how long it has taken; raises StepError with its output.

    It gets a process group of its own, which is ended when this is interrupted.
    """
    process = None
    with tempfile.TemporaryFile() as output:
        try:
            with held():
                process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            status = _watch(process, _ticker(title))
        finally:
            if process is not None:
                with held():
                    _end(process)
        if status != 0:
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
            raise StepError(f"{title} failed with status {status}:\n{text}")


def answer(command: Sequence[str | Path]) -> str:
    """What a command of a moment prints; raises StepError with what it said instead.

    Without a limit, as no moment is too long on a busy machine; Ctrl-C ends it.
    """
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        words = " ".join(map(str, command))
        said = (asked.stdout + asked.stderr).strip()
        raise StepError(f"{words} failed with status {asked.returncode}:\n{said}")
    return asked.stdout


def _watch(process: subprocess.Popen[bytes], tick: Callable[[float, bool], None]) -> int:
    began = time.monotonic()
    tick(0, False)
    while True:
        try:
            status = process.wait(TICK_S)
        except subprocess.TimeoutExpired:
            tick(time.monotonic() - began, False)
        else:
            tick(time.monotonic() - began, True)
            return status


def _ticker(title: str) -> Callable[[float, bool], None]:
    """A function that shows the seconds so far: in place on a terminal, as lines elsewhere."""
    on_terminal = sys.stderr.isatty()
    last = 0.0

    def tick(seconds: float, done: bool) -> None:
        nonlocal last
        if on_terminal:
            text = f"\r\x1b[Kbarnabas: {title}" + (f" … {seconds:.0f} s" if seconds >= 1 else " …")
            sys.stderr.write(text + ("\n" if done else ""))
        elif seconds == 0:
            sys.stderr.write(f"barnabas: {title}\n")
        elif not done and seconds - last >= QUIET_TICK_S:
            last = seconds
            sys.stderr.write(f"barnabas: {title}: {seconds:.0f} s so far\n")
        sys.stderr.flush()

    return tick


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the group of a command, and wait until its leader is gone."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_S)
    # What it started and did not wait for, a compiler for example.
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
