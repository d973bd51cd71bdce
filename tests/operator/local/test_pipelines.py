"""Pipelines as processes; Spark itself is met in tests/pipelines/spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from barnabas_operator.api.conditions import is_ready
from barnabas_operator.local import pipelines, processes
from barnabas_operator.local.pipelines import PipelineFiles
from barnabas_operator.local.state import StateDirectory
from tests.operator.local.laptop import Laptop, cluster, pipeline, topic
from tests.waiting import START, seconds

NAME = "packages-to-parquet"


def test_a_missing_java_is_reported(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pipeline says so itself; the cluster and its topics are Ready all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    seen = laptop.up(cluster(), topic(), pipeline())
    assert f"starting pipeline {NAME}" in laptop.said
    ready = seen.pipelines[NAME].status.conditions[0]
    assert (ready.status, ready.reason) == ("False", "NotInstalled")
    assert ready.message.startswith("pipelines need ")
    assert seen.pipelines[NAME].pid is None
    assert is_ready(seen.status.conditions)
    assert is_ready(seen.topics["packages"].conditions)
    assert seen.ready
    assert laptop.look().as_json()["ready"] is True


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """Where a pipeline has its directory."""
    state = StateDirectory(tmp_path)
    PipelineFiles(state.pipeline(NAME)).data.mkdir(parents=True)
    return state


def _run(state: StateDirectory, code: str) -> processes.Entry:
    files = PipelineFiles(state.pipeline(NAME))
    return processes.launch(
        [sys.executable, "-c", code],
        directory=files.directory,
        log=files.log,
        pid_file=files.pid,
        fingerprint="f",
    )


def _says(state: StateDirectory, **reported: object) -> None:
    path = PipelineFiles(state.pipeline(NAME)).data / "status.json"
    path.write_text(json.dumps(reported))


def test_a_pipeline_that_runs_is_as_it_says(state: StateDirectory) -> None:
    """From the status file that it keeps on its volume."""
    entry = _run(state, "import time; time.sleep(100)")
    try:
        status, verdict = pipelines.look(NAME, state)
        assert (status.phase, verdict.ready, verdict.settled) == ("Starting", False, False)
        _says(state, phase="WaitingForTopics", message="no topic packages")
        _, verdict = pipelines.look(NAME, state)
        assert (verdict.reason, verdict.message) == ("WaitingForTopics", "no topic packages")
        _says(state, phase="Running", rows=5, lag=2, lastBatchId=1, rowsPerSecond=2.5)
        status, verdict = pipelines.look(NAME, state)
        assert verdict.ready
        assert (status.rows, status.lag, status.last_batch_id) == (5, 2, 1)
    finally:
        assert pipelines.end(PipelineFiles(state.pipeline(NAME)), timeout_s=seconds(START))
    assert not entry.running
    status, verdict = pipelines.look(NAME, state)
    assert (status.phase, status.rows, status.rows_per_second) == ("Stopped", 5, 0.0)


def test_a_pipeline_that_ended_says_why(state: StateDirectory) -> None:
    """Its last line, and where the others are."""
    _run(state, "import sys; sys.exit('Error: the volume is full')")
    pipelines.await_settled([NAME], state, deadline=float("inf"))
    status, verdict = pipelines.look(NAME, state)
    assert status.phase == "Failed"
    assert verdict.stalled
    assert verdict.message.startswith("its process ended: the volume is full (log: ")


def test_a_pipeline_without_a_resource_is_stopped(state: StateDirectory) -> None:
    """What it wrote stays."""
    entry = _run(state, "import time; time.sleep(100)")
    said: list[str] = []
    pipelines.ensure([], state, say=said.append, timeout_s=seconds(START))
    assert said == [f"pipeline {NAME}: stopped, its KafkaPipeline is gone; its files stay"]
    assert not entry.running
    assert PipelineFiles(state.pipeline(NAME)).data.is_dir()
