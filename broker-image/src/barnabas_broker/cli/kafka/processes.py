"""Servers that a start script leaves running, found again by the stop script.

Apache's scripts look for Java's main class in the list of processes. Ours keep one small file for
each server, in a directory of the user's own, so that nothing else is ever stopped. A pid alone is
no name, for the kernel reuses it later: the file has the moment of the start too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

POLL_S = 0.05


class Server(NamedTuple):
    """A server that was started, and what it is called: its broker id or client port."""

    file: Path
    pid: int
    name: str


def directory() -> Path:
    """Where the files are: `$BARNABAS_RUN_DIR`, or the user's directory for such things."""
    own = os.environ.get("BARNABAS_RUN_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "barnabas"


def register(kind: str, pid: int, name: str) -> Path | None:
    """Remember a server; None where there is nowhere to write, as in a container."""
    file = directory() / f"{kind}-{pid}.json"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(json.dumps({"pid": pid, "began": _began(pid), "name": name}))
    except OSError:
        return None  # There the stop script has no use either: the container is stopped.
    return file


def running(kind: str) -> list[Server]:
    """The servers of that kind that run; files of those that ended are removed."""
    found = []
    for file in sorted(directory().glob(f"{kind}-*.json")):
        try:
            document = json.loads(file.read_text())
            pid, began, name = int(document["pid"]), str(document["began"]), str(document["name"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if _began(pid) == began:
            found.append(Server(file, pid, name))
        else:
            file.unlink(missing_ok=True)
    return found


def stop(server: Server) -> None:
    """Ask it to end, as the scripts of Kafka do, without waiting for it."""
    os.kill(server.pid, signal.SIGTERM)


def launch(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process that goes on when this one has ended; what it says is appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, or the Java that was found
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def ended_within(process: subprocess.Popen[bytes], ready: Path, limit_s: float) -> int | None:
    """Wait until `ready` exists; the exit code where the process ends before, else None."""
    deadline_s = time.monotonic() + limit_s
    while not ready.exists() and time.monotonic() < deadline_s:
        code = process.poll()
        if code is not None:
            return code
        time.sleep(POLL_S)
    return None


def log_directory() -> Path:
    """Where `-daemon` writes: `$LOG_DIR`, otherwise `logs` beside where one is."""
    return Path(os.environ.get("LOG_DIR") or "logs")


def _began(pid: int) -> str:
    """When the process began, in the kernel's words; empty where there is none alive."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _began_by_ps(pid) if not Path("/proc/self/stat").exists() else ""
    # The name of the program is in brackets and may hold anything; numbers follow it.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def _began_by_ps(pid: int) -> str:
    """The same where there is no /proc."""
    asked = subprocess.run(  # noqa: S603
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()
