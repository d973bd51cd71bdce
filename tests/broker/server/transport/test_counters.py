"""Counting misconduct without letting it fill the log."""

import logging

import pytest

from barnabas_broker.server.transport.counters import Cause, Counters

LOG = logging.getLogger("test.counters")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged."""
    return [record.getMessage() for record in caplog.records]


def test_a_flood_is_one_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    """Everything is counted; what was left out is said with the next line."""
    counters = Counters(LOG)
    for number in range(10_000):
        counters.note(Cause.BAD_FRAME, number / 5000, "frame %d", number)
    assert counters.totals[Cause.BAD_FRAME] == 10_000
    assert lines(caplog) == ["frame 0", "frame 5000 (and 4999 more like it before)"]


def test_causes_do_not_hide_each_other(caplog: pytest.LogCaptureFixture) -> None:
    """A flood of one kind leaves the first line of another kind visible."""
    counters = Counters(LOG)
    counters.note(Cause.BAD_FRAME, 1.0, "one")
    counters.note(Cause.BAD_FRAME, 1.1, "two")
    counters.note(Cause.IDLE, 1.1, "three")
    assert lines(caplog) == ["one", "three"]


def test_the_number_of_suppressed_lines_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """When nothing more comes, the number of lines left out is logged once."""
    counters = Counters(LOG)
    for _ in range(5):
        counters.note(Cause.BAD_FRAME, 1.0, "frame")
    counters.log_suppressed(1.5)
    counters.log_suppressed(2.0)
    counters.log_suppressed(9.0)
    assert lines(caplog) == ["frame", "bad-frame: 4 more that were not logged"]
