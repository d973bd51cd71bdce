"""Measures a newcomer's first minutes, from the command: what docs/operations/footprint.md shows.

`python -m e2e.newcomer.times` does so in a copy of this checkout that it removes, with the packages
that uv has in its cache: `make demo` once and again, the size of its environment, and how long
`barnabas local up` takes until one broker is Ready. It says how busy the machine was.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.newcomer.container import copy_into
from e2e.newcomer.play import environment

STARTS: Final = 5
MANIFEST: Final = """\
apiVersion: barnabas.io/v1alpha1
kind: KafkaCluster
metadata: {name: one}
spec:
  brokers: {replicas: 1, storage: {size: 1Gi}}
  listeners: [{name: plain, port: 29092, type: internal}]
"""


def took_s(command: Sequence[str | Path], clone: Path) -> float:
    """Seconds of a command that succeeds, in a login's environment."""
    variables = environment(Path.home(), os.environ)
    began = time.monotonic()
    subprocess.run(command, cwd=clone, env=variables, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def size_mb(directory: Path) -> float:
    """What the files take, each once, in millions of bytes."""
    files = {
        (stat.st_dev, stat.st_ino): stat.st_blocks * 512
        for stat in (path.lstat() for path in directory.rglob("*"))
    }
    return sum(files.values()) / 1e6


def starts_s(clone: Path) -> list[float]:
    """Seconds of `barnabas local up` for one broker, each with a new directory."""
    barnabas = clone / ".venv-demo" / "bin" / "barnabas"
    manifest = clone / "one.yaml"
    manifest.write_text(MANIFEST)
    place = ("--dir", clone / "state")
    found = []
    for _ in range(STARTS):
        found.append(took_s((barnabas, "local", "up", manifest, *place), clone))
        took_s((barnabas, "local", "down", "--delete-data", *place), clone)
    return found


def main() -> int:
    """Measure, and print a line for each figure."""
    with tempfile.TemporaryDirectory(prefix="newcomer-clone-") as place:
        clone = copy_into(Path(place))
        for title in ("make demo, the first time", "make demo, the second time"):
            sys.stdout.write(f"{title}: {took_s(('make', 'demo'), clone):.1f} s, {_load()}\n")
            sys.stdout.flush()
        sys.stdout.write(f".venv-demo: {size_mb(clone / '.venv-demo'):.0f} MB\n")
        starts = starts_s(clone)
        spread = f"median of {STARTS}, {min(starts):.2f} to {max(starts):.2f}"
        median = statistics.median(starts)
        sys.stdout.write(f"barnabas local up, one broker: {median:.2f} s, {spread}, {_load()}\n")
    return 0


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
