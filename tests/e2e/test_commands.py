"""Commands that fail say what, how and why."""

from __future__ import annotations

import pytest

from e2e.commands import CommandError, missing, run
from tests.waiting import ATTEMPT_S


def test_the_output_of_a_command_is_returned() -> None:
    """Bytes in, bytes out; nothing is decoded on the way."""
    assert run("cat", stdin=b"\x00\xff") == b"\x00\xff"


def test_a_failure_has_the_command_its_status_and_its_words() -> None:
    """Standard error and output are both in the message."""
    with pytest.raises(CommandError) as failed:
        run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert failed.value.said == "out\nerr"
    assert "exit status 3" in str(failed.value)


def test_a_command_that_does_not_end_is_stopped() -> None:
    """With what it had said until then; a shell takes its time to begin on a busy machine."""
    with pytest.raises(CommandError, match=r"not done after \d+ s") as stopped:
        run("sh", "-c", "echo begun; exec sleep 600", within=ATTEMPT_S / 20)
    assert stopped.value.said == "begun"


def test_missing_programs_are_named() -> None:
    """Those that are there are not."""
    assert missing(("sh", "no-such-program")) == ["no-such-program"]
