"""A plugin of pytest that writes what happens to a file, an event a line, as it happens.

`tools.testrun` loads it with `-p tests.run_report --run-events=FILE` and makes its tables of the
events. A run that is killed leaves all up to then, and which tests were running. With xdist only
the controller writes; the workers' reports reach it. Needs pytest alone: it runs in every
environment that suites run in.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

PHASES: Final = ("setup", "call", "teardown")
PRESSURE: Final = ("cpu", "io", "memory")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file to write to."""
    parser.addoption("--run-events", help="write an event a line, as JSON, to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Write events, unless this is a worker of xdist."""
    path = config.getoption("--run-events")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(path)), "run-events")


def load() -> dict[str, str]:
    """How busy the machine is: load averages, and pressure where the kernel says."""
    files = {"loadavg": Path("/proc/loadavg")}
    files |= {name: Path("/proc/pressure") / name for name in PRESSURE}
    found = {}
    for name, path in files.items():
        try:
            found[name] = path.read_text(encoding="ascii").strip()
        except OSError:  # Not on every system, nor readable in every container.
            continue
    return found


class Recorder:
    """Gathers the phases of each test, and writes it when its last phase is over."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("", encoding="utf-8")
        self._tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._write({"event": "start", "id": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase is over, or a worker has crashed in the test."""
        test = self._tests.setdefault(report.nodeid, _test(report.nodeid, report.location[0]))
        test["phases"][report.when] = round(report.duration, 4)
        if report.failed:
            test["outcome"] = "failed"
            test["failures"].append(_failure(report))
        elif report.skipped and test["outcome"] == "passed":
            test["outcome"] = "skipped"
        if report.when == "teardown" or report.when not in PHASES:
            self._write(self._tests.pop(report.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file cannot be imported."""
        if report.failed:
            test = _test(report.nodeid, report.nodeid)
            self._write(test | {"outcome": "failed", "failures": [_failure(report)]})

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """The run comes to its end, whatever the outcome."""
        self._write({"event": "end", "status": int(exitstatus)})

    def _write(self, event: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + os.linesep)


def _test(node_id: str, file: str) -> dict[str, Any]:
    return {
        "event": "test", "id": node_id, "file": file,
        "outcome": "passed", "phases": {}, "failures": [],
    }  # fmt: skip


def _failure(report: pytest.TestReport | pytest.CollectReport) -> dict[str, Any]:
    return {
        "phase": getattr(report, "when", "collect"),
        "text": report.longreprtext,
        "sections": [list(section) for section in report.sections],
        "at": datetime.now(tz=UTC).isoformat(timespec="seconds"),
        "load": load(),
    }
