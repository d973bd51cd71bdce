"""The processes and event loops under test: what they did during a wait, and where they stand.

Whoever starts a process registers it with `watch`, an event loop in this process with `watch_loop`.
`Usage` is read before and after a wait; `report` says what happened in between. Processor time
comes from the kernel's scheduler (`/proc/PID/task/*/schedstat`), which counts separately how long
a thread ran and how long it was ready but had no processor: the first is work, the second is
starvation, and where both are next to nothing a thread waited for something that did not come.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOG_LINES: Final = 20
DUMP_LINES: Final = 200
DUMP_S: Final = 5.0
"""How long a dump may take until the rest of the evidence is printed without it."""
END_OF_DUMP: Final = ("End of task dump", "JNI global ref")
"""The last line of a broker's dump, and of a JVM's."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process under test; with `dumps` it answers SIGQUIT with its stacks, in its log."""

    name: str
    pid: int
    log_file: Path | None
    dumps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a process has used up to one moment."""

    state: str
    """R runs, S sleeps, D waits for a disk, T is stopped, Z has ended; empty: there is none."""
    ran_s: float = 0.0
    starved_s: float = 0.0
    """How long its threads were ready to run and had no processor, in sum."""


_watched: Final[dict[int, Process]] = {}
_loops: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, str]] = (
    weakref.WeakKeyDictionary()
)


def watch(name: str, pid: int, log_file: Path | None = None, *, dumps: bool = False) -> None:
    """Report on this process when a wait runs out, until `forget` or until its test has ended."""
    _watched[pid] = Process(name, pid, log_file, dumps)


def forget(pid: int) -> None:
    """Report no more on a process that is about to be ended on purpose."""
    _watched.pop(pid, None)


def watch_loop(name: str, loop: asyncio.AbstractEventLoop) -> None:
    """Report on the tasks of an event loop that runs in a thread of this process."""
    _loops[loop] = name


def watched() -> list[Process]:
    """The processes under test; without any, it is the one of the tests itself."""
    return [*_watched.values()] or [Process("the tests", os.getpid(), None, dumps=False)]


def read_usages() -> dict[int, Usage]:
    """What each process under test has used so far."""
    return {process.pid: read_usage(process.pid) for process in watched()}


def read_usage(pid: int) -> Usage:
    """What a process has used so far; a state of nothing where there is no such process."""
    root = Path(f"/proc/{pid}")
    try:
        state = (root / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return Usage(state="")
    ran = starved = 0
    for schedstat in root.glob("task/*/schedstat"):
        try:
            counters = schedstat.read_text().split()
        except OSError:  # The thread has ended meanwhile.
            continue
        ran, starved = ran + int(counters[0]), starved + int(counters[1])
    return Usage(state=state, ran_s=ran / 1e9, starved_s=starved / 1e9)


def describe(process: Process, before: Usage | None, now: Usage) -> str:
    """One line: what a process did between two readings."""
    if not now.state:
        return f"{process.name} (pid {process.pid}): has ended"
    past = before or Usage(state="")
    names = {"T": "stopped by a signal", "Z": "ended, not reaped", "D": "waiting for a disk"}
    state = names.get(now.state, "")
    return (
        f"{process.name} (pid {process.pid}): ran {now.ran_s - past.ran_s:.2f} s, "
        f"waited for a processor {now.starved_s - past.starved_s:.2f} s"
        + (f", is {state}" if state else "")
    )


def report(before: Mapping[int, Usage]) -> str:
    """What every process under test did since `before`, its last log lines and its task dump."""
    parts = []
    for process in watched():
        now = read_usage(process.pid)
        parts.append(f"--- {describe(process, before.get(process.pid), now)}")
        if process.log_file is not None:
            parts.append(_tail(process.log_file))
        if process.dumps and now.state and now.state not in "TZ":
            parts.append(f"--- task dump of {process.name}\n{_dump(process)}")
    parts += [f"--- tasks of {name}\n{_tasks(loop)}" for loop, name in list(_loops.items())]
    return "\n".join(parts)


def _tail(log_file: Path) -> str:
    try:
        return "\n".join(log_file.read_text(errors="replace").splitlines()[-LOG_LINES:])
    except OSError as error:
        return f"(no log: {error})"


def _dump(process: Process) -> str:
    """Ask for a dump with SIGQUIT, and read what the log has grown by."""
    log_file = process.log_file
    if log_file is None:
        return "(no log to read it from)"
    try:
        length = log_file.stat().st_size
        os.kill(process.pid, signal.SIGQUIT)
    except OSError as error:
        return f"(none: {error})"
    give_up_at = time.monotonic() + DUMP_S
    while True:
        text = log_file.read_bytes()[length:].decode(errors="replace")
        if any(end in text for end in END_OF_DUMP):
            return "\n".join(text.splitlines()[:DUMP_LINES])
        if time.monotonic() > give_up_at:
            return f"(not complete after {DUMP_S:g} s: its event loop does not turn)\n{text}"
        time.sleep(0.05)


def _tasks(loop: asyncio.AbstractEventLoop) -> str:
    # Late: the environment of the Spark tests has no broker in it, and no loop of one either.
    from barnabas_broker.server.process.task_dump import format_tasks

    return "(closed)" if loop.is_closed() else format_tasks(loop)
