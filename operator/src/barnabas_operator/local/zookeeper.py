"""The coordination data that several brokers of a cluster share: one process on loopback.

It is the ZooKeeper for development (`barnabas zookeeper start`): durable, alone, no Java.
"""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas_operator.local import processes
from barnabas_operator.local.state import LocalError, Record, StateDirectory

HOST: Final = "127.0.0.1"
NAME: Final = "the ZooKeeper"
ABANDON_S: Final = 10.0
ANSWER_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 64 << 10
_MODE: Final = re.compile(r"^Mode: (\w+)", re.MULTILINE)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ZooKeeperFiles(processes.ProcessFiles):
    """Where the files of the process, or of a member of Apache's ensemble, are."""

    NAME = "zookeeper"

    @property
    def settings(self) -> Path:
        """zoo.cfg, which Apache's has."""
        return self.directory / "zoo.cfg"


def ensure(record: Record, state: StateDirectory, *, say: Say, deadline: float) -> None:
    """Have the process run; raises LocalError where it does not come to serve."""
    files = ZooKeeperFiles(state.zookeeper)
    files.directory.mkdir(parents=True, exist_ok=True)
    entry = files.entry()
    if entry is not None and entry.running:
        return
    if entry is not None:
        say(processes.exit_message(NAME, files.log))
    port = record.zookeeper or 0
    command = [
        sys.executable, "-P", "-m", "barnabas_broker.cli", "zookeeper", "start",
        "--data-dir", str(files.data), "--host", HOST, "--port", str(port),
    ]  # fmt: skip
    entry = processes.launch(
        command, directory=files.directory, log=files.log, pid_file=files.pid, fingerprint=""
    )
    try:
        record.zookeeper = _await_port(entry, files, deadline)
    except BaseException:  # An interrupt must not leave it half started.
        processes.abandon(entry, timeout_s=ABANDON_S)
        files.pid.unlink(missing_ok=True)
        raise
    say(f"ZooKeeper serves {HOST}:{record.zookeeper}: one process, for development")


def _await_port(entry: processes.Entry, files: ZooKeeperFiles, deadline: float) -> int:
    """The port that it says it serves, once it does."""
    while True:
        said = files.log.read_text(errors="replace")
        for line in said.splitlines():
            if line.startswith("zookeeper: "):
                port = int(line.split()[1].rpartition(":")[2])
                with socket.create_connection((HOST, port), timeout=ABANDON_S):
                    return port
        if not entry.running:
            why = processes.last_words(files.log).removeprefix("Error: ")
            raise LocalError(f"the ZooKeeper cannot start: {why} (log: {files.log})")
        if time.monotonic() > deadline:
            raise LocalError(f"the ZooKeeper is not ready in time (--timeout; log: {files.log})")
        time.sleep(processes.POLL_S)


def mode_at(port: int) -> str | None:
    """As what the server at this port serves; None where it does not."""
    found = _MODE.search(answer(port, b"srvr"))
    return found[1] if found else None


def answer(port: int, command: bytes) -> str:
    """A server's response to a command of four letters; empty where there is none."""
    said = bytearray()
    try:
        with socket.create_connection((HOST, port), ANSWER_S) as connection:
            connection.sendall(command)
            while len(said) < ANSWER_BYTES_MAX and (more := connection.recv(4096)):
                said += more
    except OSError:
        return ""
    return said.decode(errors="replace")


def end(files: ZooKeeperFiles, *, timeout_s: float, name: str = NAME) -> bool:
    """Stop it; whether it was running. Raises LocalError if it does not stop in time."""
    entry = files.entry()
    running = entry is not None and entry.running
    if entry is not None and not processes.stop(entry, timeout_s=timeout_s):
        text = f"{name} does not stop within {timeout_s:g} s"
        raise LocalError(f"{text}: see {files.log}, try again, or kill -9 {entry.pid}")
    files.pid.unlink(missing_ok=True)
    return running
