"""What a reader can see of the output directory at every moment."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from barnabas_pipelines import batches
from barnabas_pipelines.batches import BatchDirectory
from barnabas_pipelines.errors import PipelineError


def claimed(path: Path, *, run: str = "run-1", committed: int | None = None) -> BatchDirectory:
    """The output of checkpoint c1."""
    directory = BatchDirectory(path, run=run)
    directory.claim("c1", committed=committed)
    return directory


def write(directory: BatchDirectory, batch: int, text: str) -> None:
    """What Spark leaves in a staging directory."""
    place = directory.staging(batch)
    place.mkdir()
    (place / f"part-{text}.parquet").write_text(text)
    (place / f".part-{text}.parquet.crc").write_text("checksum")
    (place / "_SUCCESS").write_text("")


def seen(path: Path) -> list[str]:
    """What a reader of batch=*/*.parquet finds."""
    return sorted(file.read_text() for file in path.glob("batch=*/*.parquet"))


def test_a_batch_appears_when_it_is_published(tmp_path: Path) -> None:
    """Not while it is written; and only with its Parquet files."""
    directory = claimed(tmp_path)
    write(directory, 0, "zero")
    assert seen(tmp_path) == []
    assert directory.publish(0) == tmp_path / "batch=0"
    assert seen(tmp_path) == ["zero"]
    assert [entry.name for entry in (tmp_path / "batch=0").iterdir()] == ["part-zero.parquet"]
    assert directory.finished() == [0]


def test_a_batch_that_runs_again_replaces_itself(tmp_path: Path) -> None:
    """And nothing of the earlier run stays, wherever."""
    directory = claimed(tmp_path)
    for text in ("first", "second"):
        write(directory, 7, text)
        directory.publish(7)
    assert seen(tmp_path) == ["second"]
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["part-second.parquet"]


def test_a_reader_never_finds_a_gap_where_a_batch_is_replaced(tmp_path: Path) -> None:
    """It finds the old batch or the new one, however often it looks."""
    directory = claimed(tmp_path)
    write(directory, 0, "old")
    directory.publish(0)
    stop, gaps = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            if not (tmp_path / "batch=0").exists():
                gaps.append(1)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(200):
        write(directory, 0, str(number))
        directory.publish(0)
    stop.set()
    reader.join()
    assert gaps == []


def test_directories_are_replaced_without_an_atomic_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On file systems and systems without the call, in two steps."""
    monkeypatch.setattr(batches, "_RENAME_EXCHANGE", 1 << 30)  # No flag of any kernel: EINVAL.
    test_a_batch_that_runs_again_replaces_itself(tmp_path)
    assert not list((tmp_path / "_staging" / "run-1").iterdir())


def test_leftovers_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    """Half-written batches are nobody's."""
    write(claimed(tmp_path), 3, "half")
    directory = claimed(tmp_path, run="run-2")
    assert not (tmp_path / "_staging").exists()
    write(directory, 3, "whole")
    directory.publish(3)
    assert seen(tmp_path) == ["whole"]


def test_a_surviving_run_does_not_affect_the_next(tmp_path: Path) -> None:
    """A JVM may outlive its killed Python for a moment and go on writing."""
    old = claimed(tmp_path)
    new = claimed(tmp_path, run="run-2", committed=2)
    write(new, 3, "new")
    write(old, 3, "old")
    new.publish(3)
    assert seen(tmp_path) == ["new"]


def test_output_without_its_checkpoint_is_not_written_over(tmp_path: Path) -> None:
    """A new checkpoint begins with batch 0 again: that would replace the old one's."""
    claimed(tmp_path)
    with pytest.raises(PipelineError, match="was written with another checkpoint"):
        BatchDirectory(tmp_path, run="r").claim("c2", committed=None)


def test_a_checkpoint_without_its_output_does_not_go_on(tmp_path: Path) -> None:
    """It would leave out what it believes to be written."""
    with pytest.raises(PipelineError, match=r"has finished batch 41, but .* is not its output"):
        claimed(tmp_path / "new", committed=41)
    assert not (tmp_path / "new").exists()


def test_a_checkpoint_older_than_its_output_does_not_go_on(tmp_path: Path) -> None:
    """It would cut the same records into other batches. One batch ahead is a crash, not age."""
    directory = claimed(tmp_path)
    for batch in (0, 1, 2):
        write(directory, batch, str(batch))
        directory.publish(batch)
    claimed(tmp_path, committed=1)
    with pytest.raises(PipelineError, match="has batch 2, but the checkpoint has finished only 0"):
        claimed(tmp_path, committed=0)
    assert seen(tmp_path) == ["0", "1", "2"]


def test_batches_without_an_owner_are_left_alone(tmp_path: Path) -> None:
    """A directory with batches and no owner is not taken."""
    (tmp_path / "batch=0").mkdir()
    with pytest.raises(PipelineError, match="holds batches of an unknown writer"):
        claimed(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{"])
def test_a_damaged_owner_is_said(tmp_path: Path, text: str) -> None:
    """Rather than taken for none."""
    (tmp_path / "_pipeline.json").write_text(text)
    with pytest.raises(PipelineError, match=r"_pipeline\.json is damaged"):
        claimed(tmp_path)


def test_finished_batches_may_be_moved_away(tmp_path: Path) -> None:
    """The owner's mark stays, and with it the right to go on."""
    directory = claimed(tmp_path)
    write(directory, 0, "zero")
    directory.publish(0).rename(tmp_path.parent / f"{tmp_path.name}-moved")
    claimed(tmp_path, committed=0)
    assert directory.finished() == []


def test_a_small_file_is_written_whole(tmp_path: Path) -> None:
    """And leaves nothing beside it."""
    for number in (1, 2):
        batches.write_atomically(tmp_path / "f.json", json.dumps(number))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("f.json", "2")]
