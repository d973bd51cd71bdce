"""A command that fails is a fact to come; the error of a time-out has its words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.commands import CommandError
from e2e.wait import NotInTimeError, wait_for


def test_a_failed_command_is_asked_again() -> None:
    """So is what does not hold yet; what holds is returned."""
    answers: Iterator[dict[str, str] | Exception] = iter(
        [{}, CommandError(("kubectl",), "exit status 1", ""), {"uid": "2"}]
    )

    def read() -> dict[str, str]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = wait_for("another pod", read, until=lambda pod: pod.get("uid") == "2")
    assert found == {"uid": "2"}


def test_other_errors_pass_through() -> None:
    """A mistake in a scenario does not wait for its deadline."""
    with pytest.raises(ZeroDivisionError):
        wait_for("a number", lambda: 1 / 0)


def test_a_time_out_has_the_last_failure_and_the_state() -> None:
    """The error names the fact, what the command printed last, and what else is known."""

    def read() -> bool:
        raise CommandError(("kubectl", "get"), "exit status 1", "connection refused")

    with pytest.raises(NotInTimeError) as late:
        wait_for("Ready pods", read, within=-1, show=lambda: "one pod is Pending")
    for words in ("Ready pods", "connection refused", "one pod is Pending"):
        assert words in str(late.value)
