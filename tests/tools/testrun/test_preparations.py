"""Preparations run one after another beside the suites, and end with the run."""

from __future__ import annotations

import os
from pathlib import Path

from tests.tools.testrun.project import python
from tests.tools.testrun.test_processes import runs
from tools.testrun.preparations import Preparations
from tools.testrun.processes import Surroundings
from tools.testrun.suites import Preparation


def test_one_after_another(tmp_path: Path) -> None:
    """Each has a log of its own; one that fails does not keep the next from running."""
    wanted = [
        Preparation("first", python("print('one'); raise SystemExit(4)")),
        Preparation("second", python("print('two')")),
    ]
    prepared = Preparations(wanted, Surroundings(tmp_path, {}), tmp_path / "logs")
    prepared.start()
    assert prepared.wait("second").status == 0
    assert prepared.is_over("first")
    assert prepared.wait("first").status == 4
    assert prepared.tail("first") == "one"
    assert (tmp_path / "logs" / "second-prepare.log").read_text() == "two\n"


def test_a_limit_ends_a_preparation(tmp_path: Path) -> None:
    """What hangs does not keep its suite waiting for ever."""
    hangs = Preparation("hangs", python("import signal; signal.pause()"), limit_minutes=0.01)
    prepared = Preparations([hangs], Surroundings(tmp_path, {}), tmp_path / "logs")
    prepared.start()
    assert prepared.wait("hangs").timed_out


def test_the_end_of_a_run_ends_them(tmp_path: Path) -> None:
    """The one that runs is ended, and no other begins."""
    os.mkfifo(tmp_path / "pid")
    program = "import os, signal; open('pid', 'w').write(str(os.getpid())); signal.pause()"
    wanted = [
        Preparation("hangs", python(program)),
        Preparation("next", python("open('next', 'w')")),
    ]
    prepared = Preparations(wanted, Surroundings(tmp_path, {}), tmp_path / "logs")
    prepared.start()
    pid = (tmp_path / "pid").read_text()
    prepared.stop()
    assert not runs(pid)
    assert not (tmp_path / "next").exists()
