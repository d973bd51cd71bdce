"""Waiting ends when the condition holds, or says why it never did."""

from __future__ import annotations

import pytest

from e2e.commands import CommandError
from e2e.wait import NotInTimeError, wait_for


def test_what_the_condition_found_is_returned() -> None:
    """None and False are asked again; so is a condition whose command fails."""
    answers = iter([None, False, CommandError(("kubectl",), "exit status 1", ""), "found"])

    def condition() -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert wait_for("something", condition, within_s=20) == "found"


def test_zero_and_empty_are_answers() -> None:
    """Only None and False mean no."""
    assert wait_for("a number", lambda: 0, within_s=20) == 0
    assert wait_for("a list", list, within_s=20) == []


def test_the_end_of_patience_tells_the_last_failure_and_the_state() -> None:
    """Who reads the error sees what was waited for, what was said last, and how things are."""

    def condition() -> bool:
        raise CommandError(("kubectl", "get"), "exit status 1", "connection refused")

    with pytest.raises(NotInTimeError) as late:
        wait_for("pods are ready", condition, within_s=-1, told=lambda: "one pod is Pending")
    for words in ("pods are ready", "connection refused", "one pod is Pending"):
        assert words in str(late.value)
