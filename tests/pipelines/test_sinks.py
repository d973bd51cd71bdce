"""When a batch is written, and when Spark is told that it is not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas_pipelines.batches import BatchDirectory
from barnabas_pipelines.errors import PipelineError
from barnabas_pipelines.sinks import ParquetSink
from tests.waiting import ANSWER, seconds


class Batch:
    """Of a DataFrame, what the sink uses; it writes when it is let."""

    def __init__(self, *, let: bool = True) -> None:
        self.begun, self.let = threading.Event(), threading.Event()
        self.write = self
        if let:
            self.let.set()

    def coalesce(self, files: int) -> Batch:
        """As many files as asked for are one here."""
        return self

    def mode(self, mode: str) -> Batch:
        """Only the one mode is right: what an earlier run staged is nobody's."""
        assert mode == "overwrite"
        return self

    def parquet(self, path: str) -> None:
        """Write when let; a batch that is never let fails."""
        self.begun.set()
        assert self.let.wait(seconds(ANSWER))
        Path(path).mkdir(parents=True)
        (Path(path) / "part-0.parquet").touch()


@pytest.fixture
def output(tmp_path: Path) -> BatchDirectory:
    """A claimed directory."""
    directory = BatchDirectory(tmp_path / "out", run="run")
    directory.claim("c", committed=None)
    return directory


@pytest.fixture
def sink(output: BatchDirectory, tmp_path: Path) -> ParquetSink:
    """A sink into it."""
    return ParquetSink(output, checkpoint=tmp_path, files_per_batch=1)


def test_a_batch_is_published_when_it_is_written(sink: Any, output: BatchDirectory) -> None:
    """One after the other."""
    for number in range(2):
        sink(Batch(), number)
    assert output.finished() == [0, 1]


def test_after_the_end_a_batch_is_refused(sink: Any, output: BatchDirectory) -> None:
    """To return as if it were written would let Spark note it as finished: records lost."""
    assert sink.close(grace_s=1)
    with pytest.raises(PipelineError, match="batch 0 comes after the end"):
        sink(Batch(), 0)
    assert output.finished() == []


def test_the_end_waits_for_the_batch_at_work(sink: Any, output: BatchDirectory) -> None:
    """And says so when it takes too long."""
    batch = Batch(let=False)
    writer = threading.Thread(target=sink, args=(batch, 0))
    writer.start()
    assert batch.begun.wait(seconds(ANSWER))
    assert not sink.close(grace_s=0)
    batch.let.set()
    assert sink.close(grace_s=seconds(ANSWER))
    writer.join()
    assert output.finished() == [0]


def test_the_error_of_a_failed_batch_is_kept(sink: Any, output: BatchDirectory) -> None:
    """Spark's own account of it has no errno and many lines."""
    output.path.joinpath("_staging").write_text("a file where a directory must be")
    with pytest.raises(NotADirectoryError):
        sink(Batch(), 0)
    assert isinstance(sink.failure, NotADirectoryError)
