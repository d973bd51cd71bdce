"""A project of a few files, with the runner's plugin in it, for the runner to run."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

from tools.testrun import busy
from tools.testrun.environment import cleaned
from tools.testrun.processes import Surroundings
from tools.testrun.record import BEGIN, DOCUMENT, END
from tools.testrun.requirements import Lack
from tools.testrun.runner import Machine, Options, Runner
from tools.testrun.suites import Kind, Preparation, Step, Suite, Tests

PLUGIN = Path(__file__).parents[2] / "run_report.py"
LIMIT_MINUTES = 5.0


def make_project(root: Path) -> None:
    """Put what the runner's commands count on into a directory."""
    (root / "tests").mkdir()
    (root / "tests" / "__init__.py").touch()
    shutil.copy(PLUGIN, root / "tests")
    make_documents(root)
    (root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")


def make_documents(root: Path) -> None:
    """Put the documents that a recorded run writes to under the root."""
    (root / "docs" / "contributing").mkdir(parents=True)
    (root / DOCUMENT).write_text(f"# Tests\n\n{BEGIN}\n{END}\n")
    (root / busy.FILE).write_text("| Date |\n|---|\n")


def add_file(root: Path, name: str, text: str) -> str:
    """Write a file under the root; returns its path from there."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return name


def pytest_suite(name: str, *paths: str, kind: Kind = Kind.PROCESSES, **more: Any) -> Suite:
    """A suite of these files."""
    tests = Tests(paths, options=more.pop("options", ()), python=sys.executable)
    base = Suite(name, f"shows {name}", kind, LIMIT_MINUTES, 1, tests=tests)
    return replace(base, **more)


def step_suite(name: str, *commands: tuple[str, ...], **more: Any) -> Suite:
    """A suite of commands, called by their numbers."""
    steps = tuple(Step(f"step {number}", command) for number, command in enumerate(commands))
    return replace(Suite(name, f"shows {name}", Kind.CHECK, LIMIT_MINUTES, 1, steps=steps), **more)


def python(program: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a program of a few lines."""
    return (sys.executable, "-c", dedent(program), *arguments)


def lacking(*programs: str) -> Machine:
    """A machine without these programs, where nothing can be installed."""

    def missing(wanted: Iterable[str]) -> Mapping[str, Lack]:
        return {name: Lack(name, f"bring {name}") for name in wanted if name in programs}

    def install(_wanted: Iterable[str]) -> None:
        """Nothing can be installed here."""

    return Machine(missing, install)


def runner(
    root: Path,
    *suites: Suite,
    options: Options | None = None,
    machine: Machine | None = None,
    preparations: tuple[Preparation, ...] = (),
) -> tuple[Runner, io.BytesIO]:
    """A runner of these suites, and all that it and they print."""
    shown = io.BytesIO()
    out = io.TextIOWrapper(shown, encoding="utf-8", write_through=True)
    # Without the plugins of this environment pytest starts in a fraction of the time.
    environment = cleaned(os.environ) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    around = Surroundings(root, environment, shown)
    machine = machine or lacking()
    made = Runner(around, options or Options(), out, suites, preparations, machine)
    return made, shown


def run(root: Path, *suites: Suite, **more: Any) -> tuple[int, str]:
    """Run suites; returns the exit status and all that was printed."""
    made, shown = runner(root, *suites, **more)
    status = made.run()
    return status, shown.getvalue().decode()


def row(printed: str, suite: str) -> list[str]:
    """The cells of a suite in the last table."""
    table = printed[printed.rindex("suite ") :]
    line = next(line for line in table.splitlines() if line.split()[:1] == [suite])
    return line.split(None, 7)
