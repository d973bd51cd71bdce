"""Processes that go on when the command that started them has ended, and are found again by file.

A pid alone is no name: after a while, or after a reboot, the kernel reuses it. The
pid file therefore has the moment of the start as the kernel knows it, and a process is only ours,
to be counted on or to be stopped, when both agree.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Final

POLL_S: Final = 0.01
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A process as a pid file has it.

    `started` is when it began, in the kernel's words; `fingerprint` identifies its settings.
    """

    pid: int
    started: str
    fingerprint: str

    @property
    def running(self) -> bool:
        """Whether this very process is alive."""
        return start_of(self.pid) == self.started


@dataclass(frozen=True, slots=True)
class ProcessFiles:
    """Where the files of a process are, named after what it runs."""

    NAME: ClassVar[str]

    directory: Path

    @property
    def pid(self) -> Path:
        """The pid file."""
        return self.directory / f"{self.NAME}.pid"

    @property
    def log(self) -> Path:
        """What it logs."""
        return self.directory / f"{self.NAME}.log"

    @property
    def data(self) -> Path:
        """The data directory; of a pipeline what /data is in a pod."""
        return self.directory / "data"

    def entry(self) -> Entry | None:
        """The process that was started last, whether it runs or not."""
        return read_entry(self.pid)


def start_of(pid: int) -> str | None:
    """When the process of this pid began, in the kernel's words; None if there is none alive.

    On Linux in clock ticks since boot, and which boot; the wall clock may be set meanwhile.
    """
    if not _PROC.joinpath("self/stat").exists():
        return start_by_ps(pid)
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text()
        boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name of the program is in brackets and may hold anything; numbers follow it.
    fields = stat.rpartition(")")[2].split()
    state, threads, ticks = fields[0], int(fields[17]), fields[19]
    # A process that is killed is a zombie as soon as its first thread has ended. Until the last
    # one has, its ports are in use and its files are locked.
    ended = state == "X" or (state == "Z" and threads <= 1)
    return None if ended else f"{boot}/{ticks}"


def age_s() -> float | None:
    """How long ago this process began, Python and its imports included; None where that is unknown.

    It is what a person has waited for a command, to a hundredth of a second.
    """
    started = start_of(os.getpid())
    ticks = started.rpartition("/")[2] if started else ""
    if not ticks.isdecimal() or not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")


def start_by_ps(pid: int) -> str | None:
    """The same where there is no /proc, as ps says it."""
    output = _ps(pid, "stat=,lstart=")
    return None if not output or output.startswith("Z") else " ".join(output.split()[1:])


def _ps(pid: int, columns: str) -> str:
    program = shutil.which("ps")
    if program is None:
        return ""
    command = [program, "-o", columns, "-p", str(pid)]
    environment = {**os.environ, "LC_ALL": "C"}
    asked = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    return asked.stdout.strip()


def resident_bytes(pid: int) -> int | None:
    """The memory in RAM of a process that `launch` started; None where it is unknown.

    On Linux with those that it started itself, for a pipeline has a JVM: they share its session.
    """
    if not _PROC.joinpath("self/stat").exists():
        output = _ps(pid, "rss=")
        return int(output) << 10 if output else None
    pages = 0
    for each in _PROC.glob("[0-9]*/stat"):
        # Processes come and go while one looks.
        with contextlib.suppress(OSError):
            fields = each.read_text().rpartition(")")[2].split()
            if each.parent.name == str(pid) or fields[3] == str(pid):
                pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE") or None


def read_entry(pid_file: Path) -> Entry | None:
    """What a pid file says; None if there is none. One that cannot be read names no process."""
    try:
        document = json.loads(pid_file.read_text())
        return Entry(**document)
    except (OSError, ValueError, TypeError):
        return None


def pid_of(entry: Entry | None) -> int | None:
    """The pid of a process that runs; None where it was stopped, or has ended."""
    return entry.pid if entry is not None and entry.running else None


def exit_message(name: str, log: Path) -> str:
    """The message that a process has ended without a request to stop."""
    return f"{name} had ended without a request to stop; its last words: {last_words(log)}"


def launch(
    command: Sequence[str],
    *,
    directory: Path,
    log: Path,
    pid_file: Path,
    fingerprint: str,
    without: Sequence[str] = (),
) -> Entry:
    """Start a process of its own session, and remember it in the pid file.

    Its output goes to `log`, and the log of the run before becomes `<log>.1`. It has the variables
    of this process, `without` some.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
            command,
            cwd=directory,
            env={name: text for name, text in os.environ.items() if name not in without},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    entry = Entry(
        pid=process.pid, started=start_of(process.pid) or "ended", fingerprint=fingerprint
    )
    write_entry(pid_file, entry)
    # It is to outlive us; without this, Popen warns that it is not waited for.
    process.returncode = 0
    return entry


def write_entry(pid_file: Path, entry: Entry) -> None:
    """Remember a process."""
    write_atomically(pid_file, json.dumps(asdict(entry)))


def write_atomically(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Replace a file in one step: a reader sees the old one or the new one.

    A private one is read by its owner alone, and survives a loss of power as a whole.
    """
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)  # Of a command that was killed; it may have another mode.
    beside.touch(mode=0o600 if private else 0o666, exist_ok=False)
    with beside.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        if private:
            file.flush()
            os.fsync(file.fileno())
    beside.replace(path)


def link_atomically(path: Path, target: Path) -> None:
    """Have a symbolic link in one step, whatever was there."""
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(path)


def stop(entry: Entry, *, timeout_s: float) -> bool:
    """End a process by SIGTERM and wait for it; whether it has ended in time."""
    return _end(entry, signal.SIGTERM, timeout_s)


def abandon(entry: Entry, *, timeout_s: float) -> None:
    """End a process that has nothing to lose: by SIGKILL when SIGTERM does not end it in time."""
    if not stop(entry, timeout_s=timeout_s):
        _end(entry, signal.SIGKILL, timeout_s)


def _end(entry: Entry, number: signal.Signals, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    if entry.running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(entry.pid, number)
    while entry.running:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def last_words(log: Path) -> str:
    """The last line that a process wrote, where it says why it ended."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
