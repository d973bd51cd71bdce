"""Steps show that they go on, and end with all that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tools import steps, uv_program

ROOT = Path(__file__).resolve().parents[2]
# A command that starts another one, and leaves its process ids where the test finds them.
FAMILY = "sleep 600 & echo $$ $! > pids; wait"
STEP = """\
import os, sys
from pathlib import Path
from tools import steps, uv_program
steps.block()
try:
    with steps.one_interrupt():
        try:
            steps.unblock()
            steps.run("compiling", ["sh", "-c", sys.argv[1]], env=os.environ, cwd=Path(sys.argv[2]))
        except KeyboardInterrupt:
            Path(sys.argv[2], "cleaning").touch()
            os.kill(os.getpid(), 2)
            os.kill(os.getpid(), 15)
            Path(sys.argv[2], "cleaned").touch()
            raise
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_a_failure_shows_the_commands_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The title comes before, the output only with a failure."""
    loud = ["sh", "-c", "echo to stdout; echo to stderr >&2; exit 3"]
    with pytest.raises(steps.StepError) as raised:
        steps.run("compiling", loud, env=os.environ, cwd=tmp_path)
    assert str(raised.value) == "compiling failed with status 3:\nto stdout\nto stderr"
    assert capsys.readouterr().err == "barnabas: compiling\n"
    steps.run("linking", ["sh", "-c", "echo nothing"], env=os.environ, cwd=tmp_path)
    assert capsys.readouterr().err == "barnabas: linking\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_whole_family(tmp_path: Path, number: signal.Signals) -> None:
    """The command and what it started; the cleaning up is not interrupted in turn."""
    process = subprocess.Popen([sys.executable, "-c", STEP, FAMILY, str(tmp_path)], cwd=ROOT)
    pids = tmp_path / "pids"
    wait_for("the family", lambda: pids.exists() and pids.read_text(), until=bool)
    process.send_signal(number)
    assert process.wait() == 130
    assert (tmp_path / "cleaned").exists()
    family = [int(pid) for pid in pids.read_text().split()]
    wait_for("its end", lambda: list(filter(_runs, family)), until=lambda left: not left)


def test_an_interrupt_waits_for_what_is_being_made() -> None:
    """What is made in `held` is known to whoever cleans up."""
    made = False
    before = signal.getsignal(signal.SIGTERM)

    def make() -> None:
        nonlocal made
        with steps.held():
            os.kill(os.getpid(), signal.SIGTERM)
            made = True

    with steps.one_interrupt(), pytest.raises(KeyboardInterrupt):
        make()
    assert made
    assert signal.getsignal(signal.SIGTERM) is before


def test_ignored_signals_stay_ignored() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with steps.one_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def _runs(pid: int) -> bool:
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_signal_that_waited_arrives_where_it_is_expected() -> None:
    """What was made while signals were blocked is cleaned up by whoever unblocks them."""
    steps.block()
    try:
        with steps.one_interrupt():
            # To this thread: others may not have blocked it.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                steps.unblock()
    finally:
        steps.unblock()


def test_a_question_is_answered_however_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No limit is set: on a busy machine a moment was longer than twenty seconds."""
    asked = []

    def ask(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        asked.append(options.get("timeout"))
        return subprocess.CompletedProcess("", 3, "to stdout\n", "to stderr\n")

    echo = ["sh", "-c", "echo uv 1.2.3"]
    assert steps.answer(echo) == "uv 1.2.3\n"
    monkeypatch.setattr(subprocess, "run", ask)
    with pytest.raises(steps.StepError, match="failed with status 3:\nto stdout\nto stderr"):
        steps.answer(echo)
    assert uv_program.version_of(tmp_path / "uv") == ()
    assert asked == [None, None]
