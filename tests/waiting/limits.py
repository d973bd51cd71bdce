"""Evidence for limits that are not ours: a library's time limit that runs out within a test.

`wait_for` reports well, but librdkafka, a Java tool or `subprocess` end their own waits with one
line. A test that fails by such an error gets the same evidence in its report: what each process
under test did since the test began, the verdict, their last log lines and their task dumps.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

import pytest

from tests.waiting import processes
from tests.waiting.facts import NotInTimeError, judge
from tests.waiting.machine import RUN, Budget
from tests.waiting.processes import Usage

SECTION: Final = "evidence of a time limit"
_TIMED_OUT: Final = re.compile(r"tim(?:e|ed)[ _-]?out", re.IGNORECASE)


def timed_out(error: BaseException | None) -> bool:
    """Whether a time limit is in the chain of an error, and none that reports for itself.

    Libraries share no type: `subprocess.TimeoutExpired`, `KafkaTimeoutError`, a KafkaException of
    `_TIMED_OUT`. Their names or texts say it.
    """
    seen: set[int] = set()
    found = False
    while error is not None and id(error) not in seen:
        if isinstance(error, NotInTimeError):
            return False
        names = " ".join(kind.__name__ for kind in type(error).__mro__)
        found = found or bool(_TIMED_OUT.search(f"{names} {error}"))
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return found


class LimitEvidence:
    """A plugin of pytest: reads usages before each test, and reports on them where it timed out."""

    def __init__(self) -> None:
        self._before: dict[int, Usage] = {}
        self._budget = Budget(RUN)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """A test begins."""
        self._before = processes.read_usages()
        self._budget = Budget(RUN)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A phase has ended; the fixtures of the test, and so its processes, are still there."""
        report = yield
        if report.failed and call.excinfo is not None and timed_out(call.excinfo.value):
            report.sections.append((SECTION, self._evidence()))
        return report

    def _evidence(self) -> str:
        self._budget.left()
        # A process that the test itself started has used nothing before.
        before = {one.pid: Usage(state="S") for one in processes.watched()} | self._before
        elapsed, available = self._budget.elapsed_s, self._budget.available
        return (
            f"{elapsed:.1f} s since the test began; the machine is {self._budget.slowness:.1f} "
            f"times slower than the reference, and {available:.0%} of it was available\n"
            f"{judge(elapsed, available, before, processes.read_usages())}\n"
            f"{processes.report(before)}"
        )
