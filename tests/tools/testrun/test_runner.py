"""A whole run: plan, progress, one table, the exit status, second chances and limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.testrun.project import (
    add_file,
    lacking,
    make_project,
    pytest_suite,
    python,
    row,
    run,
    step_suite,
)
from tools.testrun.checkout_lock import checkout_lock
from tools.testrun.record import read
from tools.testrun.runner import Options, record_last
from tools.testrun.suites import Kind, Preparation, Suite

ROOT = Path(__file__).resolve().parents[3]

PASSES = "def test_passes():\n    pass\n"
FAILS = "def test_fails():\n    print('said before')\n    assert 1 == 2\n"
# Fails the first time that it runs and passes from then on.
ONCE = """
    from pathlib import Path

    def test_once():
        seen = Path(__file__).with_suffix(".seen")
        if not seen.exists():
            seen.touch()
            print("the first time")
            raise ValueError("only once")
"""


def saved(root: Path, name: str) -> dict[str, object]:
    """A file that the run has left."""
    value: dict[str, object] = json.loads((root / ".cache" / "test-run" / name).read_text())
    return value


def once(root: Path, name: str = "once", **more: Any) -> Suite:
    """A suite whose only test is a flake."""
    return pytest_suite(name, add_file(root, f"{name}/test_{name}.py", ONCE), **more)


def test_a_good_run(root: Path) -> None:
    """Plan, a line at the begin and end of each suite, their own output, one table, status 0."""
    steps = step_suite("steps", python("print('live output')"))
    tests = pytest_suite("tests", add_file(root, "here/test_it.py", PASSES))
    status, printed = run(root, steps, tests)
    assert status == 0
    assert printed.startswith("barnabas: this machine runs 2 of 2 suites")
    order = ["[1/2] steps: shows steps", "live output", "[1/2] steps: 1 passed",
             "[2/2] tests: shows tests", "test_it.py .", "[2/2] tests: 1 passed",
             "The 2 slowest tests", "passed  failed  flaky"]  # fmt: skip
    places = [printed.index(words) for words in order]
    assert places == sorted(places)
    assert row(printed, "tests")[1:4] == ["1", "0", "0"]
    assert row(printed, "tests")[-1].strip().endswith("passed")


def test_the_run_leaves_its_record(root: Path) -> None:
    """run.json says what ran, where and at which commit; each suite has a file."""
    suite = pytest_suite("tests", add_file(root, "here/test_it.py", FAILS))
    run(root, suite, options=Options(strict=True))
    whole = saved(root, "run.json")
    assert {"date", "commit", "cores", "python", "flags", "suites", "status"} <= whole.keys()
    assert whole["status"] == 1
    tests = saved(root, "tests.json")["tests"]
    assert isinstance(tests, list)
    assert tests[0]["node_id"] == "here/test_it.py::test_fails"
    assert tests[0]["file"] == "here/test_it.py"
    assert set(tests[0]["phases"]) == {"setup", "call", "teardown"}
    assert "assert 1 == 2" in tests[0]["failures"][0]["text"]


def test_a_failure_fails_the_run_and_the_rest_still_runs(root: Path) -> None:
    """Every suite runs whatever another came to; failed tests are named beside the table."""
    bad = step_suite("bad", python("raise SystemExit(3)"), python("print('second step')"))
    worse = pytest_suite("worse", add_file(root, "a/test_a.py", FAILS), kind=Kind.UNIT)
    good = pytest_suite("good", add_file(root, "b/test_b.py", PASSES))
    status, printed = run(root, bad, worse, good)
    assert status == 1
    assert "second step" in printed
    assert "FAILED  worse: a/test_a.py::test_fails" in printed
    assert row(printed, "bad")[1:4] == ["1", "1", "0"]
    assert row(printed, "good")[1:4] == ["1", "0", "0"]


def test_missing_programs_are_listed_first_and_the_rest_runs(root: Path) -> None:
    """Outside CI a suite without its programs is listed with what brings them."""
    needy = step_suite("needy", python("print('ran')"), needs=("teapot",))
    status, printed = run(root, needy, step_suite("free", python("")), machine=lacking("teapot"))
    assert status == 0
    assert printed.index("teapot  bring teapot") < printed.index("[1/1] free")
    assert "ran\n" not in printed
    assert "not run: needs teapot (bring teapot)" in row(printed, "needy")[-1]


def test_in_ci_what_is_missing_fails_before_the_first_test(root: Path) -> None:
    """Nobody reads a table in CI: what cannot run there is a failure, and a quick one."""
    needy = step_suite("needy", python(""), needs=("teapot",))
    free = step_suite("free", python("print('ran')"))
    status, printed = run(root, free, needy, options=Options(ci=True), machine=lacking("teapot"))
    assert status == 1
    assert "bring teapot" in printed
    assert "[1/" not in printed


def test_a_suite_asked_for_by_name_must_run(root: Path) -> None:
    """`make test SUITE=needy` is no success where it cannot run."""
    needy = step_suite("needy", python(""), needs=("teapot",))
    free = step_suite("free", python(""))
    asked = Options(names=("needy", "free"))
    status, printed = run(root, needy, free, options=asked, machine=lacking("teapot"))
    assert status == 1
    assert "[1/1] free" in printed
    assert run(root, needy, options=Options(names=("needy",)), machine=lacking("teapot"))[0] == 1


def test_only_the_named_suites_run(root: Path) -> None:
    """An unknown name is an error that lists the known ones."""
    suites = (step_suite("first", python("")), step_suite("second", python("")))
    status, printed = run(root, *suites, options=Options(names=("second",)))
    assert status == 0
    assert "first" not in printed
    status, printed = run(root, *suites, options=Options(names=("third",)))
    assert status == 2
    assert "unknown suite third; the suites are first, second" in printed


def test_a_part_does_not_run_twice(root: Path) -> None:
    """Where the whole suite runs its part does not; where the whole cannot, the part does."""
    part = step_suite("part", python(""))
    whole = step_suite("whole", python(""), covers=("part",), needs=("teapot",))
    status, printed = run(root, part, whole)
    assert status == 0
    assert "part of whole" in printed
    assert "[1/1] whole" in printed
    status, printed = run(root, part, whole, machine=lacking("teapot"))
    assert status == 0
    assert "[1/1] part" in printed


def test_a_flake_is_reported_at_the_very_end(root: Path) -> None:
    """What passes on its second chance, after everything else, is FLAKY, with its evidence."""
    last = step_suite("last", python(""))
    status, printed = run(root, once(root), last)
    assert status == 0
    assert printed.index("[2/2] last: 1 passed") < printed.index("second chance: once/test_once.py")
    assert row(printed, "once")[1:4] == ["0", "0", "1"]
    end = printed[printed.index("FLAKY  once/test_once.py::test_once") :]
    assert ".cache/flaky/once-test_once.py-test_once" in end
    assert end.endswith("add it to docs/contributing/flakes.md.\n\n")
    evidence = root / ".cache" / "flaky" / "once-test_once.py-test_once"
    assert "only once" in (evidence / "failure.txt").read_text()
    assert "the first time" in (evidence / "output.txt").read_text()
    assert "test session starts" in (evidence / "suite-log-tail.txt").read_text()
    about = json.loads((evidence / "about.json").read_text())
    assert about["commit"]
    assert "loadavg" in about["failures"][0]["load"]
    assert saved(root, "once.json")["flaky"] == ["once/test_once.py::test_once"]


def test_a_test_that_fails_twice_is_no_flake(root: Path) -> None:
    """The second failure is the verdict; nothing is kept as a flake's evidence."""
    status, printed = run(root, pytest_suite("bad", add_file(root, "bad/test_bad.py", FAILS)))
    assert status == 1
    assert "second chance: bad/test_bad.py::test_fails" in printed
    assert "FLAKY" not in printed
    assert not list((root / ".cache" / "flaky").iterdir())


def test_strict_has_no_second_chance(root: Path) -> None:
    """`make test STRICT=1` takes every failure for one."""
    status, printed = run(root, once(root), options=Options(strict=True))
    assert status == 1
    assert "second chance" not in printed


@pytest.mark.parametrize("kind", [Kind.UNIT, Kind.SIMULATOR])
def test_unit_tests_have_no_second_chance(root: Path, kind: Kind) -> None:
    """What runs in one process, or in virtual time, has no other process to blame."""
    status, printed = run(root, once(root, kind=kind))
    assert status == 1
    assert "second chance" not in printed


def test_more_than_three_failures_are_no_flakes(root: Path) -> None:
    """With four failed tests in the whole run none of them has a second chance."""
    more = "".join(f"def test_{n}():\n    assert False\n\n" for n in range(3))
    bad = pytest_suite("bad", add_file(root, "bad/test_bad.py", more))
    status, printed = run(root, once(root), bad)
    assert status == 1
    assert "second chance" not in printed


def test_a_crash_has_no_second_chance(root: Path) -> None:
    """What did not run to its end says nothing about the tests it did not come to."""
    program = ONCE + "\n    def test_then():\n        import os\n        os._exit(1)\n"
    status, printed = run(root, pytest_suite("bad", add_file(root, "bad/test_bad.py", program)))
    assert status == 1
    assert "second chance" not in printed
    assert "CRASHED: exit status 1 in bad/test_bad.py::test_then" in row(printed, "bad")[-1]


def test_a_suite_without_tests_is_no_success(root: Path) -> None:
    """A file that cannot be imported, or a path without tests, is red."""
    broken = pytest_suite("broken", add_file(root, "bad/test_bad.py", "import nothing_here"))
    empty = pytest_suite("empty", add_file(root, "none/test_none.py", ""))
    status, printed = run(root, broken, empty)
    assert status == 1
    assert row(printed, "broken")[2] == "1"
    assert "CRASHED" in row(printed, "empty")[-1]


def test_a_hang_ends_at_the_limit(root: Path) -> None:
    """The table says what was running, nothing has a second chance, and the rest runs."""
    pause = "import signal; signal.pause()"
    short: dict[str, Any] = {"limit_minutes": 0.5 / 60}
    hangs = step_suite("hangs", python(""), python(pause), **short)
    tests = pytest_suite("tests", add_file(root, "h/test_h.py", pause), **short)
    status, printed = run(root, hangs, tests, step_suite("next", python("")))
    assert status == 1
    assert "TIMED OUT in step " in row(printed, "hangs")[-1]
    assert "TIMED OUT" in row(printed, "tests")[-1]
    assert "second chance" not in printed
    assert row(printed, "next")[1] == "1"


STOPPED_RUN = """
import sys
from pathlib import Path
from tests.tools.testrun.project import lacking, pytest_suite, runner, step_suite, python
from tools.testrun.processes import Surroundings, stop_signals
from tools.testrun.runner import Runner
root = Path(sys.argv[1])
waits = pytest_suite("waits", "w/test_w.py")
made, _ = runner(root, waits, step_suite("never", python("")))
around = Surroundings(root, made.around.environment, sys.stdout.buffer)
with stop_signals():
    sys.exit(Runner(around, made.options, sys.stdout, made.suites, (), lacking()).run())
"""
WAITS = """
    import threading
    from pathlib import Path

    def test_good():
        pass

    def test_waits():
        Path("started").write_text("x")
        threading.Event().wait()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_ends_the_suite_and_prints_the_table(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """The user sees what had passed and what did not run; the status is that of the signal."""
    make_project(tmp_path)
    add_file(tmp_path, "w/test_w.py", WAITS)
    started = tmp_path / "started"
    os.mkfifo(started)
    command = [sys.executable, "-c", STOPPED_RUN, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert started.read_bytes() == b"x"  # Until the second test has begun.
        running.send_signal(number)
        printed, _ = running.communicate()
    assert running.returncode == status
    assert row(printed, "waits")[1] == "1"
    assert "INTERRUPTED in w/test_w.py::test_waits" in row(printed, "waits")[-1]
    assert f"not run: {number.name}" in row(printed, "never")[-1]
    assert saved(tmp_path, "run.json")["status"] == status


def test_a_preparation_runs_along_with_the_first_suites(root: Path) -> None:
    """It starts with the run, is awaited by the suite that names it, and runs once for two."""
    start = python("open('prepared', 'a').write('x'); open('first').read()")
    os.mkfifo(root / "first")
    first = step_suite("first", python("open('first', 'w').write('go')"))
    check = python("assert open('prepared').read() == 'x'")
    later = [step_suite(name, check, prepared_by=("ready",)) for name in ("second", "third")]
    ready = Preparation("ready", start)
    status, printed = run(root, first, *later, preparations=(ready,))
    assert status == 0, printed


def test_a_failed_preparation_fails_its_suites(root: Path) -> None:
    """Its output is shown and kept, its suite does not begin, and others run."""
    ready = Preparation("ready", python("raise SystemExit('no network')"))
    needs = step_suite("needs", python("print('began')"), prepared_by=("ready",))
    other = step_suite("other", python(""))
    status, printed = run(root, needs, other, preparations=(ready,))
    assert status == 1
    assert "no network" in printed
    assert "began" not in printed
    assert "CRASHED: its preparation ready failed with status 1" in row(printed, "needs")[-1]
    assert (root / ".cache" / "test-run" / "ready-prepare.log").read_text() == "no network\n"
    assert row(printed, "other")[1] == "1"


def test_no_preparation_without_its_suite(root: Path) -> None:
    """What this run does not need is not downloaded."""
    ready = Preparation("ready", python("open('prepared', 'w')"))
    needs = step_suite("needs", python(""), prepared_by=("ready",), needs=("teapot",))
    run(root, needs, step_suite("x", python("")), preparations=(ready,), machine=lacking("teapot"))
    assert not (root / "prepared").exists()


def test_a_run_is_recorded_when_asked(root: Path) -> None:
    """The committed file has the minutes of good suites, which the next plan shows."""
    good = pytest_suite("good", add_file(root, "good/test_good.py", PASSES))
    bad = replace(good, name="bad", tests=None, steps=step_suite("", python("1/0")).steps)
    run(root, good, bad)
    assert not (root / "docs" / "contributing" / "test-run.json").exists()
    run(root, good, bad, options=Options(record=True))
    recorded = read(root)
    assert list(recorded["suites"]) == ["good"]
    assert recorded["suites"]["good"]["passed"] == 1
    assert [row[2] for row in recorded["tests"]] == ["good/test_good.py::test_passes"]
    assert "good" in run(root, good)[1]


def test_the_last_run_can_be_recorded_later(root: Path) -> None:
    """`python -m tools.testrun record` reads what the run left."""
    assert "no run to record" in record_last(root)
    run(root, pytest_suite("good", add_file(root, "good/test_good.py", PASSES)))
    assert "recorded" in record_last(root)
    assert read(root)["suites"]["good"]["passed"] == 1


def test_a_busy_run_is_a_row_of_its_own(root: Path) -> None:
    """It has what the other program took, and leaves the figures of an idle machine alone."""
    good = pytest_suite("good", add_file(root, "good/test_good.py", PASSES))
    needy = step_suite("needy", python(""), needs=("teapot",))
    options = Options(record=True, strict=True, busy=True)
    for _ in range(2):
        assert run(root, good, needy, options=options, machine=lacking("teapot"))[0] == 0
    assert not (root / "docs" / "contributing" / "test-run.json").exists()
    rows = (root / "docs" / "contributing" / "busy-runs.md").read_text().splitlines()[2:]
    assert len(rows) == 2
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert cells[2:4] == ["all", "yes"]
    assert 0 < float(cells[4].rstrip("%")) <= 101
    assert "(good 0." in cells[5]
    assert cells[6:] == ["1", "0", "0", "needy", "passed"]


def test_a_second_run_in_one_checkout_is_refused(root: Path) -> None:
    """It would write over the files of the first; that one goes on."""
    with checkout_lock(root / ".cache" / "test-run"):
        status, printed = run(root, step_suite("steps", python("print('ran')")))
    assert status == 2
    assert f"in progress in this checkout, process {os.getpid()}; wait for its end" in printed
    assert "ran\n" not in printed
    assert run(root, step_suite("steps", python("")))[0] == 0


def test_a_machine_without_git(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unpacked archive is tested as well; its commit is unknown."""
    monkeypatch.setenv("PATH", str(root))
    status, _ = run(root, step_suite("steps", python("print('live output')")))
    assert status == 0
    assert saved(root, "run.json")["commit"] == "unknown"
