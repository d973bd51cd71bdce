"""What the runner needs to know of Spark's checkpoint directory: its id, and how far it is."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from barnabas_pipelines.batches import sync_all, write_atomically
from barnabas_pipelines.errors import PipelineError


def identity(directory: Path) -> str:
    """The id in the checkpoint's `metadata`, which is made where the checkpoint is new.

    Spark takes the id it finds, so that it is known before the query starts.
    """
    path = directory / "metadata"
    try:
        return str(json.loads(path.read_text())["id"])
    except FileNotFoundError:
        if (directory / "offsets").exists():
            raise PipelineError(_damaged(path, "it is missing")) from None
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(_damaged(path, "it cannot be read")) from error
    fresh = str(uuid.uuid4())
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"id": fresh}))
    return fresh


def committed(directory: Path) -> int | None:
    """The last batch that is known to be finished, or None where there is none."""
    commits = directory / "commits"
    if not commits.is_dir():
        return None
    return max(
        (int(entry.name) for entry in commits.iterdir() if entry.name.isdigit()), default=None
    )


def settle(directory: Path, batch: int) -> None:
    """What Spark noted of this batch's offsets, and of the last one's end, is on disk after this.

    Spark itself leaves that to the operating system. A machine that loses power could otherwise
    keep a batch whose offsets it forgot, and plan another of the same records.
    """
    noted = (directory / "offsets" / str(batch), directory / "commits" / str(batch - 1))
    sync_all(path for path in noted if path.exists())


def _damaged(path: Path, how: str) -> str:
    return (
        f"the checkpoint's {path} is damaged ({how}): bring the checkpoint back,"
        " or remove checkpoint and output to start again"
    )
