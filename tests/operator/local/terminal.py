"""A terminal in which `barnabas local` is given, each command a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.waiting import RUN, seconds

BARNABAS = (sys.executable, "-P", "-m", "barnabas_broker.cli")
COMMAND = (*BARNABAS, "local")


class Terminal:
    """Runs commands; their state is in a directory of the test."""

    def __init__(self, home: Path) -> None:
        self.environment = {**os.environ, "XDG_STATE_HOME": str(home)}
        self.directory = home / "barnabas"

    def run(self, *arguments: object, code: int = 0, stdin: bytes = b"") -> str:
        """Run `barnabas local` to the end; returns what it said on both streams."""
        return self.command("local", *arguments, code=code, stdin=stdin)

    def command(self, *arguments: object, code: int = 0, stdin: bytes = b"") -> str:
        """Run `barnabas` to the end; returns what it said on both streams."""
        done = subprocess.run(
            [*BARNABAS, *map(str, arguments)],
            env=self.environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds(RUN),
            check=False,
        )
        printed = done.stdout.decode()
        assert done.returncode == code, printed
        return printed

    def status(self, *arguments: object) -> list[dict[str, Any]]:
        """The clusters that `status` tells of."""
        reported = json.loads(self.run("status", "--output", "json", *arguments))
        clusters: list[dict[str, Any]] = reported["clusters"]
        return clusters

    def document(self, *arguments: object) -> Any:
        """What a command prints for programs; what it tells people is on standard error."""
        done = subprocess.run(
            [*COMMAND, *map(str, arguments), "--output", "yaml"],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds(RUN),
            check=True,
        )
        assert done.stderr.startswith("quickstart: ")
        return yaml.safe_load(done.stdout)
