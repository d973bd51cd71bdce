"""The directory a pipeline writes to, in which every finished batch appears in one step.

    <path>/batch=17/part-….parquet     a finished batch: complete from the moment it can be seen
    <path>/_staging/<run>/batch=18/    a batch being written; a listing of batch=* does not have it
    <path>/_pipeline.json              whose output this is: the id of the checkpoint

A reader needs to know nothing of this: `<path>/batch=*/*.parquet` holds each record once.

Why that is exactly once: Spark writes a batch's offsets to the checkpoint before it runs the batch,
and the batch's id into the checkpoint's commits after. After a crash between the two the batch runs
again, with the same id and offsets, and takes the place of what was there. So every batch is there
once, whenever the crash came. It holds as long as output and checkpoint belong together, and
`_pipeline.json` guards that. A crash of the machine is no exception: the checkpoint's files of a
batch are on disk (`checkpoint.settle`) before the batch appears.

Files only, no Spark: local file systems and those that behave like one (POSIX rename).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from barnabas_pipelines.errors import PipelineError

STAGING: Final = "_staging"
OWNER: Final = "_pipeline.json"
_BATCH: Final = re.compile(r"batch=([0-9]+)")

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


class BatchDirectory:
    """The output of one pipeline, of which one run at a time is the writer."""

    def __init__(self, path: Path, *, run: str) -> None:
        """`run` is a name no earlier run had: what an old one still writes does no harm."""
        self.path = path
        self._run = run

    def claim(self, checkpoint_id: str, *, committed: int | None) -> None:
        """Take the directory for the checkpoint of this id, and remove what earlier runs left.

        `committed` is the checkpoint's last finished batch. Raises PipelineError where output and
        checkpoint do not belong together: going on would overwrite batches, or leave a gap.
        """
        owner = self._owner()
        if owner is None and self.finished():
            text = f"{self.path} holds batches of an unknown writer: give the pipeline another path"
            raise PipelineError(text)
        if owner is None and committed is not None:
            text = (
                f"the checkpoint has finished batch {committed}, but {self.path} is not its output:"
                " bring the output back, or remove the checkpoint to start again"
            )
            raise PipelineError(text)
        if owner not in (None, checkpoint_id):
            text = (
                f"{self.path} was written with another checkpoint: bring that checkpoint back,"
                " give the pipeline another path, or remove the directory to start again"
            )
            raise PipelineError(text)
        ahead = [batch for batch in self.finished() if batch > _next(committed)]
        if ahead:
            text = (
                f"{self.path} has batch {ahead[-1]}, but the checkpoint has finished only"
                f" {committed}, it is older than its output: bring the newer checkpoint back, or"
                " remove both to start again"
            )
            raise PipelineError(text)
        self.path.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.path / STAGING, ignore_errors=True)
        if owner is None:
            write_atomically(self.path / OWNER, json.dumps({"checkpoint": checkpoint_id}) + "\n")

    def staging(self, batch_id: int) -> Path:
        """Where to write a batch: nothing is there yet, and no reader lists it."""
        place = self.path / STAGING / self._run / f"batch={batch_id}"
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def publish(self, batch_id: int) -> Path:
        """Let the batch in staging appear at its place, whole, in place of an earlier run of it."""
        staged = self.staging_of(batch_id)
        target = self.path / f"batch={batch_id}"
        _drop_all_but_parquet(staged)
        sync_all(staged.iterdir())
        if not _exchange(staged, target):
            _replace(staged, target)
        sync_all([self.path])
        shutil.rmtree(staged, ignore_errors=True)
        return target

    def staging_of(self, batch_id: int) -> Path:
        """Where the batch is being written."""
        return self.path / STAGING / self._run / f"batch={batch_id}"

    def finished(self) -> list[int]:
        """The batches that can be seen, in order."""
        if not self.path.is_dir():
            return []
        matches = (_BATCH.fullmatch(entry.name) for entry in self.path.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def _owner(self) -> str | None:
        try:
            owner = json.loads((self.path / OWNER).read_text())["checkpoint"]
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            text = f"{self.path / OWNER} is damaged: give the pipeline another path"
            raise PipelineError(text) from error
        return str(owner)


def write_atomically(path: Path, text: str) -> None:
    """Write a small file so that a reader, or a crash, meets the old text or the new."""
    partial = path.with_name(f".{path.name}.new")
    partial.write_text(text)
    sync_all([partial])
    partial.replace(path)
    sync_all([path.parent])


def sync_all(paths: Iterable[Path]) -> None:
    """These files and directories, and the directories they are in, are on disk after this."""
    paths = list(paths)
    for path in [*paths, *{path.parent for path in paths}]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _next(committed: int | None) -> int:
    """The one batch that may have appeared without being finished in the checkpoint."""
    return 0 if committed is None else committed + 1


def _drop_all_but_parquet(directory: Path) -> None:
    """Hadoop's own checksum files would double the number of files; Parquet has its own."""
    for entry in directory.iterdir():
        if entry.suffix != ".parquet" or entry.name.startswith("."):
            entry.unlink()


def _exchange(staged: Path, target: Path) -> bool:
    """Swap the two, so that no reader finds a moment without the batch; False if that cannot be."""
    if not target.exists():
        staged.rename(target)
        return True
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(staged), os.fsencode(target)
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    failure = ctypes.get_errno()
    if failure in (errno.EINVAL, errno.ENOSYS):  # A file system without it.
        return False
    raise OSError(failure, os.strerror(failure), str(target))


def _replace(staged: Path, target: Path) -> None:
    """The same in two steps. A crash between them leaves the batch to be run again."""
    old = staged.with_name(f"{staged.name}.old")
    target.rename(old)
    staged.rename(target)
    shutil.rmtree(old, ignore_errors=True)
