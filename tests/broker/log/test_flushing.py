"""The work of a flush, run away from the event loop."""

import threading
from pathlib import Path

from barnabas_broker.log.files import DataFile
from barnabas_broker.log.flushing import FlushPlan, Unflushed


def plan_for(tmp_path: Path, *paths: Path) -> FlushPlan:
    file = DataFile.create(tmp_path / "0.log")
    return FlushPlan(up_to=5, generation=0, files=[file], paths=paths, directory=tmp_path)


def test_a_plan_runs_in_a_thread(tmp_path: Path) -> None:
    """It needs nothing of the log."""
    plan = plan_for(tmp_path)
    thread = threading.Thread(target=plan.run)
    thread.start()
    thread.join()
    assert plan.error is None


def test_files_that_went_meanwhile_are_no_error(tmp_path: Path) -> None:
    """Retention may have renamed an index, deletion the whole directory."""
    plan = plan_for(tmp_path, tmp_path / "renamed.index")
    plan.directory = tmp_path / "gone"
    (tmp_path / "0.log").unlink()
    plan.run()
    assert plan.error is None


def test_an_error_is_kept(tmp_path: Path) -> None:
    """For the log, which goes out of service."""
    plan = plan_for(tmp_path, tmp_path / ("n" * 300))
    plan.run()
    assert plan.error is not None


def test_side_files_are_remembered_by_name_until_they_are_planned(tmp_path: Path) -> None:
    """Once each, in a fixed order, and in whatever directory the log is by then."""
    unflushed = Unflushed()
    unflushed.names |= {"partition.metadata", "leader-epoch-checkpoint"}
    unflushed.names.add("partition.metadata")
    plan = unflushed.plan([], tmp_path, up_to=0)
    assert plan.paths == [tmp_path / "leader-epoch-checkpoint", tmp_path / "partition.metadata"]
    assert unflushed.plan([], tmp_path, up_to=0).paths == []
