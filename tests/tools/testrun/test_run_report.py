"""The plugin writes each test as it ends, in one process and under xdist."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.testrun.project import add_file
from tools.testrun.environment import cleaned
from tools.testrun.results import Events, read_events

TESTS = """
    import pytest

    @pytest.fixture
    def broken():
        raise RuntimeError("no set-up")

    def test_good():
        pass

    def test_bad():
        print("said before")
        assert "left" == "right"

    def test_without_its_fixture(broken):
        pass
"""


def run_pytest(root: Path, *options: str) -> Events:
    """Run all tests under a directory with the plugin; what it wrote."""
    events = root / "somewhere" / "run.events"
    command = [sys.executable, "-m", "pytest", "-p", "tests.run_report", f"--run-events={events}"]
    environment = cleaned(os.environ) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(
        [*command, *options], cwd=root, env=environment, check=False, capture_output=True
    )
    return read_events(events.read_text().splitlines())


@pytest.mark.parametrize(
    "options", [(), ("-p", "xdist.plugin", "-n", "2", "--dist", "loadfile")], ids=["one", "xdist"]
)
def test_outcomes_times_and_failures(root: Path, options: tuple[str, ...]) -> None:
    """One event for each test, also where the set-up fails; the controller alone writes."""
    add_file(root, "x/test_x.py", TESTS)
    add_file(root, "x/test_y.py", "def test_good():\n    pass\n")
    events = run_pytest(root, *options)
    assert events.status == 1
    assert not events.running
    tests = {test.node_id: test for test in events.tests}
    assert {name: test.outcome for name, test in tests.items()} == {
        "x/test_x.py::test_good": "passed",
        "x/test_x.py::test_bad": "failed",
        "x/test_x.py::test_without_its_fixture": "failed",
        "x/test_y.py::test_good": "passed",
    }
    assert len(events.tests) == len(tests)
    bad = tests["x/test_x.py::test_bad"]
    assert bad.file == "x/test_x.py"
    assert bad.seconds > 0
    (failure,) = bad.failures
    assert "'left' == 'right'" in failure.text
    assert ("Captured stdout call", "said before\n") in failure.sections
    assert failure.at
    assert failure.load["loadavg"]
    assert tests["x/test_x.py::test_without_its_fixture"].failures[0].phase == "setup"


def test_a_file_that_cannot_be_imported(root: Path) -> None:
    """It is a failure by the file's name, and no end of a run of tests."""
    add_file(root, "x/test_x.py", "import nothing_here")
    events = run_pytest(root)
    assert events.status == 2
    assert [(test.node_id, test.outcome) for test in events.tests] == [("x/test_x.py", "failed")]


def test_a_crash_leaves_what_was_before(root: Path) -> None:
    """What had ended is there, and the test that was running is named."""
    crash = "import os\n\ndef test_good():\n    pass\n\ndef test_crash():\n    os._exit(1)\n"
    add_file(root, "x/test_x.py", crash)
    events = run_pytest(root)
    assert events.status is None
    assert [test.node_id for test in events.tests] == ["x/test_x.py::test_good"]
    assert events.running == ("x/test_x.py::test_crash",)
