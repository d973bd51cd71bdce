"""What is read from a checkpoint, and made for a new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas_pipelines import checkpoint
from barnabas_pipelines.errors import PipelineError


def test_a_new_checkpoint_gets_an_id_and_keeps_it(tmp_path: Path) -> None:
    """In the file and form in which Spark looks for it."""
    first = checkpoint.identity(tmp_path / "new")
    assert json.loads((tmp_path / "new" / "metadata").read_text()) == {"id": first}
    assert checkpoint.identity(tmp_path / "new") == first
    assert checkpoint.identity(tmp_path / "other") != first


@pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense"])
def test_a_damaged_checkpoint_is_said(tmp_path: Path, text: str) -> None:
    """It is not taken for a new one."""
    (tmp_path / "metadata").write_text(text)
    with pytest.raises(PipelineError, match=r"metadata is damaged \(it cannot be read\)"):
        checkpoint.identity(tmp_path)


def test_a_checkpoint_that_lost_its_id_is_damaged(tmp_path: Path) -> None:
    """Offsets without it are somebody's."""
    (tmp_path / "offsets").mkdir()
    with pytest.raises(PipelineError, match=r"metadata is damaged \(it is missing\)"):
        checkpoint.identity(tmp_path)


def test_batches_in_the_checkpoint_are_settled(tmp_path: Path) -> None:
    """The batch's offsets and the end of the one before; the first batch has none before it."""
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    (tmp_path / "offsets" / "0").touch()
    checkpoint.settle(tmp_path, 0)
    (tmp_path / "offsets" / "1").touch()
    (tmp_path / "commits" / "0").touch()
    checkpoint.settle(tmp_path, 1)


def test_the_last_finished_batch(tmp_path: Path) -> None:
    """The highest number in commits; Hadoop's checksum files are none."""
    assert checkpoint.committed(tmp_path) is None
    commits = tmp_path / "commits"
    commits.mkdir()
    assert checkpoint.committed(tmp_path) is None
    for name in ("9", "10", ".10.crc", "..11.tmp"):
        (commits / name).touch()
    assert checkpoint.committed(tmp_path) == 10
