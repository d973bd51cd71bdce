"""Who may work on a volume, and where."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from barnabas_pipelines.errors import PipelineError
from barnabas_pipelines.spec import PipelineSpec
from barnabas_pipelines.volume import Volume

SPEC = PipelineSpec(name="p", topics=("t",), path=PurePosixPath("/data/deep/er"), interval_ms=5_000)


def test_any_directory_replaces_data(tmp_path: Path) -> None:
    """What is /data/deep/er in the document is deep/er in it."""
    volume = Volume(tmp_path)
    assert volume.output(SPEC) == tmp_path / "deep" / "er"
    assert volume.checkpoint(SPEC) == tmp_path / "checkpoint" / "p"


def test_one_at_a_time(tmp_path: Path) -> None:
    """The second is refused while the first is at work, and welcome after."""
    volume = Volume(tmp_path)
    with volume.held(SPEC), pytest.raises(PipelineError, match="another pipeline is at work"):
        volume.held(SPEC).__enter__()
    with volume.held(SPEC):
        pass


def test_the_work_directory_is_empty_at_the_start(tmp_path: Path) -> None:
    """What a killed run left there is removed; the rest is not touched."""
    (tmp_path / "work" / "blockmgr").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "batch=0").mkdir(parents=True)
    volume = Volume(tmp_path)
    with volume.held(SPEC):
        assert list(volume.work.iterdir()) == []
    assert (tmp_path / "deep" / "er" / "batch=0").is_dir()


def test_an_unwritable_path_is_reported(tmp_path: Path) -> None:
    """With the path that failed."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(PipelineError, match=r"cannot write to .*/file/.*: Not a directory; give"),
        Volume(tmp_path / "file").held(SPEC),
    ):
        pass
