"""Builds and runs the Go program (``programs/go``): records by way of Sarama and of franz-go.

The build is kept under ``.cache/go``, named by a hash of the sources. Modules come from Go's proxy
once, and Go remembers them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.waiting import RUN, seconds

SOURCES: Final = Path(__file__).parent / "programs" / "go"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "go"
LIBRARIES: Final = ("franz-go", "sarama")


def program() -> Path:
    """The program; builds it where that was not done before. Raises RuntimeError."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    built = CACHE / f"secured-{digest.hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            # Go writes it in one step.
            command = ["go", "build", "-o", str(built), "."]
            limit_s = seconds(RUN)
            done = subprocess.run(
                command, cwd=SOURCES, capture_output=True, text=True, timeout=limit_s, check=False
            )
            if done.returncode != 0:
                raise RuntimeError(f"the Go program does not build:\n{done.stderr[-3000:]}")
    return built


def round_trip(
    library: str, topic: str, records: int, properties: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Produce so many records and read them back; it prints each in a line.

    The properties have librdkafka's names, and `token` for OAUTHBEARER.
    """
    return subprocess.run(
        [str(program()), library, topic, str(records)],
        input=json.dumps(dict(properties)),
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
