"""The work of one flush, shaped for a thread.

Order matters after a power failure: directory entries and side files first, the log next, and
only then may the recovery point pass it. Nothing here touches the state of a log: the plan holds
descriptors of the files it syncs, so whatever the event loop does to the segments meanwhile, the
right bytes are synced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas_broker.log.files import DataFile, sync_directory, sync_file


@dataclass(slots=True, kw_only=True, eq=False)
class FlushPlan:
    """Everything below ``up_to`` is durable once ``run`` has returned without an ``error``.

    ``generation`` counts the log's truncations: a plan made before one proves nothing after it.
    """

    up_to: int
    generation: int
    files: Sequence[DataFile]
    paths: Sequence[Path]
    directory: Path | None
    error: OSError | None = None

    def run(self) -> None:
        """Sync everything. Blocks; touches nothing but the plan itself.

        An error is kept for the log to hear of. It is not raised, so that nobody tries again: a
        sync that failed may have dropped the pages, and the next one would then say all is well.
        """
        try:
            self._sync()
        except OSError as error:
            self.error = error

    def _sync(self) -> None:
        for path in self.paths:
            sync_file(path)
        for file in self.files:
            file.sync()
        if self.directory is not None and self.directory.exists():
            sync_directory(self.directory)
