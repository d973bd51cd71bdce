"""Interrupts `make demo` at many moments, and looks for what is left of it.

`python -m e2e.newcomer.interrupts` does so in a copy of this checkout that it removes, first while
the environment is made, then while the demonstration runs. Each play has a mark in its environment,
by which its processes are found wherever they went. It takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.newcomer.container import copy_into
from e2e.newcomer.play import environment
from tests.waiting import SETTLE, seconds

MARK: Final = "BARNABAS_NEWCOMER"
LOOKS: Final = 40
LOOK_S: Final = 0.05
# Seconds after which the installation, and then the demonstration, is interrupted.
INSTALLING: Final = (0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0)
RUNNING: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0)


def left_by(mark: str) -> list[str]:
    """The command lines of the processes that have the mark."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            if mark.encode() in (directory / "environ").read_bytes():
                words = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found.append(f"{directory.name} {words.decode(errors='replace').strip()}")
        except OSError:  # No process, one that is gone, or one of somebody else.
            continue
    return found


def interrupt(clone: Path, after: float, number: signal.Signals) -> list[str]:
    """Interrupt one `make demo`; what it left. SIGTERM goes to make alone, Ctrl-C to the group."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="newcomer-") as place:
        variables = environment(Path.home(), os.environ) | {MARK: mark, "TMPDIR": place}
        process = subprocess.Popen(
            ["make", "demo"],
            cwd=clone,
            env=variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(after)
        if number == signal.SIGTERM:
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
        try:
            process.wait(seconds(SETTLE))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return ["it had not ended in time"]
        # What make itself started may take a moment more to end.
        for _ in range(LOOKS):
            if not left_by(mark):
                break
            time.sleep(LOOK_S)
        left = [*left_by(mark), *(str(path) for path in Path(place).iterdir())]
    made = clone / ".venv-demo"
    if made.exists() and not (made / ".synced").exists():
        left.append("half an environment")
    return left


def main(arguments: Sequence[str]) -> int:
    """Interrupt all moments; the exit status says whether anything was left."""
    parser = argparse.ArgumentParser(prog="python -m e2e.newcomer.interrupts")
    parser.add_argument("--running-only", action="store_true", help="not while it installs")
    options = parser.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="newcomer-clone-") as place:
        clone = copy_into(Path(place))
        rounds = [("installing", INSTALLING)] if not options.running_only else []
        for title, moments in [*rounds, ("running", RUNNING)]:
            if title == "running":
                subprocess.run(["make", "demo"], cwd=clone, check=True, stdout=subprocess.DEVNULL)
            for number in (signal.SIGINT, signal.SIGTERM):
                for after in moments:
                    left = interrupt(clone, after, number)
                    bad += bool(left)
                    reported = ", ".join(left) or "nothing is left"
                    sys.stdout.write(f"{title}, {number.name} after {after:.1f} s: {reported}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
