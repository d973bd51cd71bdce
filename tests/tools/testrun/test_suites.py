"""The table of suites: every test belongs to one suite, and its commands are those of the files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.tools.testrun.project import add_file
from tools import needs
from tools.testrun.requirements import KIND
from tools.testrun.requirements import ROOT as ROOT_USER
from tools.testrun.suites import PREPARATIONS, SUITES, Kind, Suite, Tests, expanded

ROOT = Path(__file__).resolve().parents[3]
BY_NAME = {suite.name: suite for suite in SUITES}


def holds(suite: Suite, file: str) -> bool:
    """Whether a suite runs a file."""
    if suite.tests is None:
        return False
    return _is_under(file, suite.tests.paths) and not _is_under(file, suite.tests.ignored)


def _is_under(file: str, paths: tuple[str, ...]) -> bool:
    return any(file == path or file.startswith(f"{path}/") for path in _expanded(paths))


@cache
def _expanded(paths: tuple[str, ...]) -> list[str]:
    return expanded(ROOT, paths)


def test_every_test_file_belongs_to_one_suite() -> None:
    """None is forgotten and none runs twice, but for the part of a suite."""
    parts = {part for suite in SUITES for part in suite.covers}
    whole = [suite for suite in SUITES if suite.name not in parts]
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("e2e/**/test_*.py")]
    assert len(files) > 100
    for path in files:
        file = str(path.relative_to(ROOT))
        assert [suite.name for suite in whole if holds(suite, file)] == [_owner(file)], file


def _owner(file: str) -> str:
    """The suite that a path belongs to, by docs/contributing/testing.md."""
    if file.endswith("test_against_apache.py") or file == "tests/fuzz/test_guided.py":
        return "oracle"
    folders = ("clients", "quickstarts", "faults", "cluster", "oracle")
    found = [folder for folder in folders if file.startswith(f"tests/{folder}/")]
    if file.startswith("tests/pipelines/spark/"):
        found = ["pipelines"]
    if file.startswith("e2e/"):
        found = ["kind"]
    return found[0] if found else "unit"


def test_parts_name_files_that_exist() -> None:
    """A renamed file leaves the part that needs Python alone no smaller."""
    tests = BY_NAME["pip-clients"].tests
    assert tests is not None
    for path in tests.paths:
        assert (ROOT / path).is_file(), path
        assert holds(BY_NAME["clients"], path)
    deselected = next(option for option in tests.options if "deselect" in option)
    file, _, name = deselected.partition("=")[2].partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()


def test_python_alone_runs_four_suites() -> None:
    """A new user sees these without installing anything."""
    alone = [suite.name for suite in SUITES if not suite.needs and not suite.prepared_by]
    assert alone == ["check", "simulator", "unit", "pip-clients"]


def test_the_quick_and_most_telling_come_first() -> None:
    """A red run is red early: static checks, cores in virtual time, one broker, clusters, kind."""
    telling = ("check", "simulator", "clients", "cluster", "kind")
    assert [suite.name for suite in SUITES if suite.name in telling] == [*telling]


def test_second_chances_are_for_real_processes() -> None:
    """The kinds that never have one are the static checks, the unit tests and the simulator."""
    never = {suite.name for suite in SUITES if suite.kind is not Kind.PROCESSES}
    assert never == {"check", "docs", "unit", "simulator"}


def test_needs_preparations_and_suites_are_consistent() -> None:
    """Each program has a way to find it, each preparation a command, each suite one content."""
    known = {need.program for need in needs.NEEDS} | {*KIND, ROOT_USER}
    prepared = {preparation.name for preparation in PREPARATIONS}
    for suite in SUITES:
        assert set(suite.needs) <= known
        assert set(suite.prepared_by) <= prepared
        assert bool(suite.steps) != bool(suite.tests)
        assert suite.budget_minutes < suite.limit_minutes
        assert set(suite.covers) <= BY_NAME.keys()


def test_the_budget_fits() -> None:
    """A whole run ends within the time that .ci/run gives it."""
    parts = {part for suite in SUITES for part in suite.covers}
    assert sum(s.budget_minutes for s in SUITES if s.name not in parts) <= 75
    assert "timeout --foreground 85m make test" in (ROOT / ".ci" / "run").read_text()


def test_commands_of_tests(root: Path) -> None:
    """Patterns name the files that are there; one test runs alone with the same options."""
    for name in ("a/test_far.py", "b/test_far.py", "b/test_near.py"):
        add_file(root, name, "")
    tests = Tests(("*/test_far.py", "c"), ignored=("b/*.py",), options=("-x",), python="py")
    events = Path("run.events")
    start = ("py", "-m", "pytest", "-p", "tests.run_report", "--run-events=run.events", "-x")
    files = ("a/test_far.py", "b/test_far.py", "c")
    ignored = ("--ignore=b/test_far.py", "--ignore=b/test_near.py")
    assert tests.command(root, events) == (*start, *files, *ignored)
    assert tests.alone("a/test_far.py::test_x", events) == (*start, "a/test_far.py::test_x")
