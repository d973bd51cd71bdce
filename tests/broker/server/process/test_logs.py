"""The shape of the broker's own log."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from barnabas_broker.server.process import logs
logs.configure(sys.argv[1])
logging.getLogger("a.b").debug("not told")
logging.getLogger("a.b").warning("said to %s", "Otto")
name = "User:bob\\r\\n[2026] INFO\\x1b"
logging.getLogger("a.b").info("Topic created by %s\\nin two lines", name)
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("a.b").exception("gone wrong")
"""


def said(shape: str) -> str:
    """What a process says in that shape."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, shape], capture_output=True, text=True, check=True
    )
    assert not done.stdout
    return done.stderr


def test_json_is_one_object_a_line() -> None:
    """A log collector gets time, level, logger and message, and a failure in the same object."""
    warning, named, failure = (json.loads(line) for line in said("json").splitlines())
    assert warning["message"] == "said to Otto"
    assert (warning["level"], warning["logger"]) == ("WARNING", "a.b")
    assert warning["time"].endswith("+00:00")
    assert named["message"] == "Topic created by User:bob\r\n[2026] INFO\x1b\nin two lines"
    assert "ZeroDivisionError" in failure["exc_info"]


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_text_is_for_people(level: str) -> None:
    """Time, level, message and logger on a line, the trace below it."""
    lines = [line for line in said("text").splitlines() if level in line]
    assert len(lines) == 1
    assert lines[0].startswith("[20")
    assert lines[0].endswith("(a.b)")


def test_names_do_not_look_like_other_events() -> None:
    """A line break in what a client has named begins no line that could be an event."""
    begin = next(line for line in said("text").split("\n") if "Topic created" in line)
    assert begin.endswith("INFO Topic created by User:bob\\r")
    assert "\n    [2026] INFO\\x1b\n    in two lines (a.b)\n" in said("text")
