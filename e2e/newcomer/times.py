"""Measures a newcomer's first minutes, from the command: what benchmarks/footprint.md shows.

`python -m e2e.newcomer.times` does so in a copy of this checkout that it removes, with the packages
that uv has in its cache: `make demo` once and again, the size of its environment, and how long
`barnabas local up` takes until one broker is Ready. It says how busy the machine was, and how many
seconds of a processor the commands took, which tell what other programs have not made longer.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.metering import cpu_seconds
from e2e.newcomer.container import copy_into
from e2e.newcomer.play import environment

STARTS: Final = 5
MANIFEST: Final = """\
apiVersion: barnabas.io/v1alpha1
kind: KafkaCluster
metadata: {name: one}
spec:
  insecure: true
  brokers: {replicas: 1, storage: {size: 1Gi}}
  listeners: [{name: plain, port: 29092, type: internal}]
"""


def took_s(command: Sequence[str | Path], clone: Path) -> tuple[float, float]:
    """Seconds of a command that succeeds, in a login's environment, and of processors for it.

    What goes on after its end, as a broker does, is not in the latter.
    """
    variables = environment(Path.home(), os.environ)
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=clone, env=variables, check=True, stdout=subprocess.DEVNULL)
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, processors


def size_mb(directory: Path) -> float:
    """What the files take, each once, in millions of bytes."""
    files = {
        (stat.st_dev, stat.st_ino): stat.st_blocks * 512
        for stat in (path.lstat() for path in directory.rglob("*"))
    }
    return sum(files.values()) / 1e6


def starts_s(clone: Path) -> list[tuple[float, float]]:
    """Seconds of `barnabas local up` for one broker, each with a new directory; and of processors.

    The latter with the broker's own up to then, which run beside those of the command.
    """
    barnabas = clone / ".venv-demo" / "bin" / "barnabas"
    manifest = clone / "one.yaml"
    manifest.write_text(MANIFEST)
    place = ("--dir", clone / "state")
    found = []
    for _ in range(STARTS):
        took, processors = took_s((barnabas, "local", "up", manifest, *place), clone)
        pid = json.loads((clone / "state" / "broker-0" / "broker.pid").read_text())["pid"]
        found.append((took, processors + cpu_seconds(pid)))
        took_s((barnabas, "local", "down", "--delete-data", *place), clone)
    return found


def main() -> int:
    """Measure, and print a line for each figure."""
    with tempfile.TemporaryDirectory(prefix="newcomer-clone-") as place:
        clone = copy_into(Path(place))
        for title in ("make demo, the first time", "make demo, the second time"):
            took, processors = took_s(("make", "demo"), clone)
            used = f"{processors:.1f} s of processors"
            sys.stdout.write(f"{title}: {took:.1f} s, {used}, {_load()}\n")
            sys.stdout.flush()
        sys.stdout.write(f".venv-demo: {size_mb(clone / '.venv-demo'):.0f} MB\n")
        starts, processors_of = zip(*starts_s(clone), strict=True)
        spread = f"median of {STARTS}, {min(starts):.2f} to {max(starts):.2f}"
        used = f"{statistics.median(processors_of):.2f} s of processors"
        took = statistics.median(starts)
        sys.stdout.write(
            f"barnabas local up, one broker: {took:.2f} s, {spread}, {used}, {_load()}\n"
        )
    return 0


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
