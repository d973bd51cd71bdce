"""Plays the shell blocks of documents as printed, and says which command failed.

`python -m e2e.newcomer.play README.md` plays them as the user who calls it, in the clone that is
the working directory. The commands share a shell, as a newcomer's do: what one exports, the next
one has. Standard library only, as this also runs where nothing is installed.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from e2e.newcomer.blocks import Block, blocks

# What a login on a fresh machine has.
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
# Settings of the machine's administrator that a login has as well: mirrors and certificates.
INHERITED: Final = (
    "SSL_CERT_FILE", "PIP_CERT", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "HTTPS_PROXY",
    "NO_PROXY", "UV_CACHE_DIR", "NODE_EXTRA_CA_CERTS", "GOPROXY",
)  # fmt: skip
# It ends what hangs: the README took 532 s on a busy machine.
LIMIT_S: Final = 1800.0


class PlayError(Exception):
    """A command of a document failed; the text says which one and how."""


def script(played: Sequence[Block]) -> str:
    """One shell program of all blocks; each is announced, and ends the play if it fails."""
    parts = ["set -euo pipefail"]
    for block in played:
        where = f"{block.document}:{block.line}"
        parts += [f"printf '\\n==> %s\\n' {shlex.quote(where)} >&2", block.text.rstrip()]
    return "\n".join(parts) + "\n"


def environment(home: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables of a login; nothing of a developer's."""
    kept = {name: inherited[name] for name in INHERITED if name in inherited}
    login = {"HOME": str(home), "PATH": PATH, "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
    return login | {"USER": home.name} | kept


def play(played: Sequence[Block], *, clone: Path, variables: Mapping[str, str], **user: Any) -> str:
    """Play blocks in a clone; the output of all. Raises PlayError.

    `user` is what subprocess takes: user, group, extra_groups.
    """
    process: subprocess.Popen[str] = subprocess.Popen(
        ["bash", "-c", script(played)],
        cwd=clone,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        **user,
    )
    try:
        reported, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        reported, _ = process.communicate()
        raise PlayError(f"not at its end after {LIMIT_S:.0f} s:\n{reported}") from None
    if process.returncode != 0:
        raise PlayError(f"failed with status {process.returncode}:\n{reported}")
    return reported


def main(arguments: Sequence[str]) -> int:
    """Play documents of the clone in the working directory as the user who calls this."""
    clone = Path.cwd()
    played = [each for name in arguments for each in blocks(clone / name, name)]
    began = time.monotonic()
    try:
        reported = play(played, clone=clone, variables=environment(Path.home(), os.environ))
    except PlayError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    seconds = time.monotonic() - began
    sys.stdout.write(f"{reported}\nplayed {len(played)} blocks in {seconds:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["README.md"]))
