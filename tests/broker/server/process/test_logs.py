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
    warning, failure = (json.loads(line) for line in said("json").splitlines())
    assert warning["message"] == "said to Otto"
    assert (warning["level"], warning["logger"]) == ("WARNING", "a.b")
    assert warning["time"].endswith("+00:00")
    assert "ZeroDivisionError" in failure["exc_info"]


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_text_is_for_people(level: str) -> None:
    """Time, level, message and logger on a line, the trace below it."""
    lines = [line for line in said("text").splitlines() if level in line]
    assert len(lines) == 1
    assert lines[0].startswith("[20")
    assert lines[0].endswith("(a.b)")
