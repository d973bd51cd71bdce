"""Where a pipeline's batches go."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas_pipelines.batches import BatchDirectory
from barnabas_pipelines.checkpoint import settle
from barnabas_pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG: Final = logging.getLogger(__name__)


class ParquetSink:
    """Writes each micro-batch as a directory of Parquet files: the argument of `foreachBatch`.

    Spark calls it from a thread of its own; `close` comes from another. After `close` no batch is
    written any more, and Spark gets an error, lest it took the batch for finished.
    """

    def __init__(
        self, directory: BatchDirectory, *, checkpoint: Path, files_per_batch: int
    ) -> None:
        self._directory = directory
        self._checkpoint = checkpoint
        self._files_per_batch = files_per_batch
        self._writing = threading.Lock()
        self._closed = False
        self.failure: Exception | None = None  # Why a batch could not be written.

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write one batch; the same id again replaces what it wrote before."""
        with self._writing:
            if self._closed:
                raise PipelineError(f"batch {batch_id} comes after the end")
            try:
                self._write(batch, batch_id)
            except Exception as failure:
                self.failure = failure
                raise

    def _write(self, batch: DataFrame, batch_id: int) -> None:
        LOG.debug("batch %d: writing", batch_id)
        staged = self._directory.staging(batch_id)
        # One task per core instead of one per Kafka partition: fewer and larger files.
        batch.coalesce(self._files_per_batch).write.mode("overwrite").parquet(str(staged))
        LOG.debug("batch %d: written", batch_id)
        settle(self._checkpoint, batch_id)
        self._directory.publish(batch_id)
        LOG.debug("batch %d: published", batch_id)

    def close(self, *, grace_s: float) -> bool:
        """Let the batch at work finish, at most so long, and take no other; whether it finished."""
        finished = self._writing.acquire(timeout=grace_s)
        self._closed = True
        if finished:
            self._writing.release()
        return finished
