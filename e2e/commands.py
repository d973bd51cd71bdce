"""Runs docker, kind, helm and kubectl, and says well what went wrong."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.waiting import RUN, seconds

ROOT: Final = Path(__file__).resolve().parent.parent
TAIL_CHARACTERS: Final = 4000


class CommandError(Exception):
    """A command that failed: the command, its exit status and the end of what it said."""

    def __init__(self, command: Sequence[str], status: int | str, said: str) -> None:
        self.said = said.strip()
        words = " ".join(map(_shown, command))
        super().__init__(f"{words}: {status}\n{self.said[-TAIL_CHARACTERS:]}")


def _shown(argument: str) -> str:
    """An argument in a message: a program that is given as text need not be read there."""
    first, _, more = argument.partition("\n")
    return f"{first[:80]}…" if more or len(first) > 200 else first


def run(
    *command: str,
    stdin: bytes | str | None = None,
    within: float = RUN,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
) -> bytes:
    """The standard output of a command; raises CommandError unless it ends well and in time.

    `within` is in machine seconds.
    """
    limit_s = seconds(within)
    given = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            timeout=limit_s,
            check=False,
            cwd=cwd,
            env=env,
        )
    except subprocess.TimeoutExpired as error:
        printed = (error.stdout or b"") + (error.stderr or b"")
        message = f"not done after {limit_s:.0f} s"
        raise CommandError(command, message, printed.decode(errors="replace")) from error
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise CommandError(command, f"exit status {done.returncode}", said)
    return done.stdout


def missing(programs: Sequence[str]) -> list[str]:
    """Those programs that are not on the path."""
    return [program for program in programs if shutil.which(program) is None]
