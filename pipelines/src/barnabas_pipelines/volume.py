"""The volume of a pipeline: where everything is on it, and that one run at a time uses it.

    /data/<sink path>           the output (batches.py)
    /data/checkpoint/<name>/    Spark's checkpoint of the pipeline
    /data/status.json           the status (status.py)
    /data/work/                 Spark's own temporary files, emptied at each start

In a pod /data is the claim. Elsewhere any directory takes its place.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from barnabas_pipelines.errors import PipelineError
from barnabas_pipelines.spec import VOLUME, PipelineSpec


@dataclass(frozen=True, slots=True)
class Volume:
    """The directory that stands for /data."""

    root: Path

    def output(self, spec: PipelineSpec) -> Path:
        """Where the batches of a pipeline go."""
        return self.root / spec.path.relative_to(VOLUME)

    def checkpoint(self, spec: PipelineSpec) -> Path:
        """Spark's checkpoint of a pipeline."""
        return self.root / "checkpoint" / spec.name

    @property
    def status(self) -> Path:
        """The status file."""
        return self.root / "status.json"

    @property
    def work(self) -> Path:
        """Temporary files."""
        return self.root / "work"

    @contextmanager
    def held(self, spec: PipelineSpec) -> Iterator[None]:
        """Be the only one at work here; raises PipelineError if that cannot be.

        The lock ends with the process, however it ends.
        """
        try:
            for place in (self.checkpoint(spec), self.output(spec)):
                place.mkdir(parents=True, exist_ok=True)
            lock = (self.root / "checkpoint" / ".lock").open("w")
        except OSError as error:
            text = (
                f"cannot write to {error.filename or self.root}: {error.strerror};"
                " give the pipeline a directory of its own with --data"
            )
            raise PipelineError(text) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                text = f"another pipeline is at work in {self.root}: stop it, or use another --data"
                raise PipelineError(text) from error
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir()
            yield
            shutil.rmtree(self.work, ignore_errors=True)
