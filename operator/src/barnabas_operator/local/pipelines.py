"""The pipelines of a cluster: `barnabas pipeline run` as a process each, where it is installed."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.pipelines import KafkaPipeline, PipelineStatus
from barnabas_operator.api.reading import Resource
from barnabas_operator.local import processes
from barnabas_operator.local.state import LocalError, StateDirectory
from barnabas_operator.progress import Progress
from barnabas_operator.resources.objects import digest

Pipeline = Resource[KafkaPipeline]
Say = Callable[[str], None]

FAILED: Final = "Failed"
RUNNING: Final = "Running"
NOT_INSTALLED: Final = "NotInstalled"
HOW_TO_INSTALL: Final = (
    "pipelines are not installed here: `make spark` in the sources,"
    " or install the distribution barnabas with its extra `pipelines`"
)
# How `barnabas pipeline run` begins when it lacks pyspark or Java; what to do follows.
_LACKS: Final = "pipelines need "
_ERROR: Final = "Error: "
USER_VARIABLE: Final = "BARNABAS_KAFKA_USER"
POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class PipelineFiles(processes.ProcessFiles):
    """Where the files of a pipeline are."""

    NAME = "pipeline"

    @property
    def resource(self) -> Path:
        """The KafkaPipeline, for its process to read."""
        return self.directory / "pipeline.yaml"

    def progress(self) -> Progress | None:
        """What the pipeline says of itself; None as long as it says nothing."""
        try:
            document = json.loads((self.data / "status.json").read_text())
        except (OSError, ValueError):
            return None
        return Progress.of(document) if isinstance(document, Mapping) else None


def installed() -> bool:
    """Whether there is `barnabas pipeline` here; Spark and Java it looks for itself."""
    return bool(entry_points(group="barnabas.commands", name="pipeline"))


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the brokers are for a pipeline, and the files of its user."""

    bootstrap: str
    user: Path | None = None


def ensure(
    pipelines: Sequence[tuple[Pipeline, Mapping[str, Any], Connection]],
    state: StateDirectory,
    *,
    say: Say,
    timeout_s: float,
) -> None:
    """Bring the processes to what the resources say: start, restart, or stop those without one."""
    wanted = {pipeline.meta.name for pipeline, *_ in pipelines}
    for name in state.pipelines():
        if name not in wanted and end(PipelineFiles(state.pipeline(name)), timeout_s=timeout_s):
            say(f"pipeline {name}: stopped, its KafkaPipeline is gone; its files stay")
    if not installed():
        return
    for pipeline, document, connection in pipelines:
        _ensure(pipeline.meta.name, document, state, connection, say=say, timeout_s=timeout_s)


def _ensure(
    name: str,
    document: Mapping[str, Any],
    state: StateDirectory,
    connection: Connection,
    *,
    say: Say,
    timeout_s: float,
) -> None:
    files = PipelineFiles(state.pipeline(name))
    # JSON is YAML; the status is no part of what is wanted.
    text = json.dumps({key: document[key] for key in document if key != "status"}, default=str)
    user = [] if connection.user is None else [str(connection.user)]
    fingerprint = digest([text, connection.bootstrap, *user])
    entry = files.entry()
    if entry is not None and entry.running:
        if entry.fingerprint == fingerprint:
            return
        say(f"restarting pipeline {name}: its resource, or how it connects, is another now")
        end(files, timeout_s=timeout_s)
    else:
        say(f"starting pipeline {name}")
    files.data.mkdir(parents=True, exist_ok=True)
    # What an earlier process said is not what this one says.
    (files.data / "status.json").unlink(missing_ok=True)
    files.resource.write_text(text)
    command = [
        sys.executable, "-P", "-m", "barnabas_broker.cli", "pipeline", "run", str(files.resource),
        "--bootstrap", connection.bootstrap, "--data", str(files.data), "--wait", "60",
        *(["--kafka-user", *user] if user else []),
    ]  # fmt: skip
    processes.launch(
        command,
        directory=files.directory,
        log=files.log,
        pid_file=files.pid,
        fingerprint=fingerprint,
        # In a shell that runs pipelines by hand it names a user of another cluster.
        without=(USER_VARIABLE,),
    )


def await_settled(names: Sequence[str], state: StateDirectory, deadline: float) -> None:
    """Wait until each pipeline runs, or has ended."""
    waiting = list(names)
    while waiting and time.monotonic() < deadline:
        waiting = [name for name in waiting if not look(name, state)[1].settled]
        if waiting:
            time.sleep(POLL_S)


def look(
    name: str, state: StateDirectory, before: PipelineStatus | None = None
) -> tuple[PipelineStatus, Verdict]:
    """How a pipeline fares: its status, without conditions, and the verdict on it."""
    files = PipelineFiles(state.pipeline(name))
    entry, progress = files.entry(), files.progress()
    status = before or PipelineStatus()
    if progress is not None:
        status = PipelineStatus(
            phase=progress.phase,
            rows=progress.rows,
            rows_per_second=progress.rows_per_second,
            lag=progress.lag,
            last_batch_id=progress.last_batch_id,
        )
    if entry is None:
        reason = "Stopped" if installed() else NOT_INSTALLED
        message = "" if installed() else HOW_TO_INSTALL
        return _idle(status, reason), Verdict(ready=False, reason=reason, message=message)
    if not entry.running:
        return _ended(status, files)
    if progress is None or progress.phase == "Starting":
        verdict = Verdict(ready=False, reason="Starting", message="it starts", settled=False)
        return dataclasses.replace(status, phase="Starting"), verdict
    if progress.phase != RUNNING:
        message = progress.message or f"the pipeline says {progress.phase}"
        return status, Verdict(ready=False, reason=progress.phase, message=message, settled=False)
    return status, Verdict(ready=True, reason=RUNNING, message=progress.message)


def _ended(status: PipelineStatus, files: PipelineFiles) -> tuple[PipelineStatus, Verdict]:
    """Of a process that ended without a request to stop."""
    said = processes.last_words(files.log).removeprefix(_ERROR)
    if said.startswith(_LACKS):
        verdict = Verdict(ready=False, reason=NOT_INSTALLED, message=said)
        return _idle(status, NOT_INSTALLED), verdict
    message = f"its process ended: {said or 'it said nothing'} (log: {files.log})"
    return _idle(status, FAILED), Verdict(ready=False, reason=FAILED, message=message, stalled=True)


def _idle(status: PipelineStatus, phase: str) -> PipelineStatus:
    return dataclasses.replace(status, phase=phase, rows_per_second=0.0)


def end(files: PipelineFiles, *, timeout_s: float) -> bool:
    """Stop a pipeline between two batches; whether one was running. Raises LocalError."""
    entry = files.entry()
    running = entry is not None and entry.running
    if entry is not None and not processes.stop(entry, timeout_s=timeout_s):
        text = f"the pipeline of {files.directory} does not stop within {timeout_s:g} s"
        raise LocalError(f"{text}: see {files.log}, try again, or kill -9 {entry.pid}")
    files.pid.unlink(missing_ok=True)
    return running
