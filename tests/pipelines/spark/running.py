"""A pipeline as its own process, watched through what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.waiting import ANSWER, seconds

PIPELINE = """\
kind: KafkaTopic
apiVersion: barnabas.io/v1alpha1
metadata: {{name: passed-over}}
---
apiVersion: barnabas.io/v1alpha1
kind: KafkaPipeline
metadata: {{name: records-to-parquet}}
spec:
  cluster: quickstart{user}
  source: {{topics: [{topics}], maxOffsetsPerTrigger: {batch}}}
  sink: {{parquet: {{path: /data/records}}}}
  trigger: {{interval: 1s}}
  storage: {{size: 1Gi}}
"""


def write_pipeline(
    directory: Path, *topics: str, batch: int = 1_000_000, user: str | None = None
) -> Path:
    """A file with one pipeline of these topics among other documents."""
    file = directory / "pipeline.yaml"
    named = f"\n  user: {user}" if user else ""
    file.write_text(PIPELINE.format(topics=", ".join(topics), batch=batch, user=named))
    return file


class Pipeline:
    """A running `python -m barnabas_pipelines run`, in a process group of its own."""

    def __init__(self, file: Path, data: Path, bootstrap: str | None, *options: str) -> None:
        command = [sys.executable, "-m", "barnabas_pipelines", "run", str(file), "--verbose"]
        command += ["--data", str(data), "--status", "127.0.0.1:0"]
        command += ["--bootstrap", bootstrap] if bootstrap else []
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=dict(os.environ, PYTHONUNBUFFERED="1"),
        )

    def await_line(self, pattern: str) -> re.Match[str]:
        """Read what it says until a line has the pattern; fails if it ends before that."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"it ended without {pattern!r}:\n{''.join(self.said)}")

    def status(self, address: str) -> dict[str, Any]:
        """What it answers at /status."""
        with urllib.request.urlopen(address, timeout=seconds(ANSWER)) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    @property
    def pid(self) -> int:
        """The process id of Python; the JVM is its child."""
        return self._process.pid

    def await_address(self) -> str:
        """Where it serves its status."""
        return self.await_line(r"status at (http://\S+)")[1]

    def kill(self) -> None:
        """End Python and JVM as a crash of the machine would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._finish()

    def kill_python(self) -> None:
        """End Python alone: the JVM finds out by itself."""
        self._process.kill()
        self._finish()

    def terminate(self) -> int:
        """SIGTERM to Python, as Kubernetes does to the first process; returns the exit code."""
        self._process.terminate()
        return self._finish()

    def wait(self) -> int:
        """Let it come to its end; returns the exit code."""
        return self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self.kill()

    def _finish(self) -> int:
        assert self._process.stderr is not None
        with self._process.stderr as rest:
            self.said.extend(rest)
        return self._process.wait()


def run(file: Path, data: Path, bootstrap: str, options: Sequence[str] = ("--once",)) -> str:
    """Run a pipeline to its end, which must be a good one; returns what it said."""
    with Pipeline(file, data, bootstrap, *options) as pipeline:
        code = pipeline.wait()
        assert code == 0, "".join(pipeline.said)
        return "".join(pipeline.said)
