"""The longest time between acknowledged records, for each test under load that reports it.

A test records it as the property `LONGEST_GAP`; a conftest imports `pytest_terminal_summary`.
"""

from __future__ import annotations

from typing import Final

import pytest

LONGEST_GAP: Final = "longest gap between acknowledged records"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long clients could not write, for each test that reports it."""
    reported = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == LONGEST_GAP and report.when == "call"
    ]
    if reported:
        terminalreporter.section(LONGEST_GAP)
        for line in reported:
            terminalreporter.write_line(str(line))
