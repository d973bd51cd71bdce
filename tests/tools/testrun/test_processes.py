"""Commands run in a group of their own, with their output passed through, and end with it."""

from __future__ import annotations

import io
import os
import subprocess
import threading
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from tests.tools.testrun.project import python
from tests.waiting import wait_for
from tools.testrun import processes
from tools.testrun.processes import Surroundings, run
from tools.testrun.subreaper import CANNOT_START


@pytest.fixture
def shown() -> io.BytesIO:
    """What is shown to the user."""
    return io.BytesIO()


@pytest.fixture
def around(tmp_path: Path, shown: io.BytesIO) -> Surroundings:
    """A directory and an environment of one name."""
    return Surroundings(tmp_path, {"NAME": "value"}, shown)


def test_output_is_shown_and_kept(tmp_path: Path, around: Surroundings, shown: io.BytesIO) -> None:
    """Both streams in their order, from the given directory and environment."""
    program = """
        import os, sys
        print(os.getcwd(), os.environ["NAME"], flush=True)
        sys.exit("to standard error")
    """
    log = tmp_path / "logs" / "run.log"
    ended = run(python(program), around, log, limit_s=60)
    expected = f"{tmp_path} value\nto standard error\n".encode()
    assert shown.getvalue() == log.read_bytes() == expected
    assert (ended.status, ended.timed_out) == (1, False)


def test_a_program_that_is_missing(tmp_path: Path, around: Surroundings, shown: io.BytesIO) -> None:
    """It is a failed command with a line that says so."""
    ended = run(("no-such-program",), around, tmp_path / "log", limit_s=60)
    assert ended.status == CANNOT_START
    assert b"cannot run no-such-program" in shown.getvalue()


GROUP = """
    import os, signal, subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with open("pids", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    signal.pause()
"""


def runs(pid: str) -> bool:
    """Whether a process runs; one that has ended may wait for an init that does not reap."""
    try:
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_limit_ends_a_hang(tmp_path: Path, around: Surroundings) -> None:
    """A process that waits for ever ends at the limit."""
    pause = "import signal; signal.pause()"
    ended = run(python(pause), around, tmp_path / "log", limit_s=0.2)
    assert ended.timed_out
    assert ended.status < 0


def test_the_whole_group_ends(tmp_path: Path, around: Surroundings) -> None:
    """What a process has started ends with it."""
    os.mkfifo(tmp_path / "pids")
    pids: list[str] = []
    stop = threading.Event()

    def stop_when_started() -> None:
        pids.extend((tmp_path / "pids").read_text().split())
        stop.set()

    reader = threading.Thread(target=stop_when_started)
    reader.start()
    ended = run(python(GROUP), around, tmp_path / "log", limit_s=600, stop=stop)
    reader.join()
    assert ended.stopped
    assert len(pids) == 2
    assert not any(map(runs, pids))


def test_leftover_processes_of_a_command_are_killed(tmp_path: Path, around: Surroundings) -> None:
    """A process that a suite forgot does not run beside the next."""
    program = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        print(child.pid)
    """
    ended = run(python(program), around, tmp_path / "log", limit_s=60)
    assert (ended.status, ended.timed_out) == (0, False)
    assert not runs((tmp_path / "log").read_text())


DETACHED = """
    import signal, subprocess, sys
    parent = (
        "import signal, subprocess, sys;"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "command = [sys.executable, '-c', 'import signal; signal.pause()'];"
        "print(subprocess.Popen(command, start_new_session=True).pid)"
    )
    subprocess.run([sys.executable, "-c", parent], start_new_session=True, check=True)
"""


@pytest.mark.parametrize("hangs", [True, False])
def test_a_process_in_its_own_session_is_killed_too(
    tmp_path: Path, around: Surroundings, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    """A suite that is cut off, or forgets it, leaves no daemon; that of others stays."""
    monkeypatch.setattr(processes, "TERM_TIMEOUT_S", 1.0)
    log, stop = tmp_path / "log", threading.Event()

    def pids() -> list[str]:
        return log.read_text().split() if log.exists() else []

    def stop_when_started() -> None:
        wait_for("the daemon", pids)
        stop.set()

    watcher = threading.Thread(target=stop_when_started)
    program = dedent(DETACHED) + ("signal.pause()" if hangs else "")
    with subprocess.Popen(python("input()"), stdin=subprocess.PIPE) as other:
        watcher.start()
        ended = run(python(program), around, log, limit_s=600, stop=stop if hangs else None)
        watcher.join()
        assert ended.stopped is hangs
        assert [runs(each) for each in pids()] == [False]
        assert other.poll() is None
        other.kill()


def test_a_command_can_be_stopped(tmp_path: Path, around: Surroundings) -> None:
    """A preparation that nothing waits for any more ends early."""
    stop = threading.Event()
    stop.set()
    program = "import signal; signal.pause()"
    ended = run(python(program), around, tmp_path / "log", limit_s=600, stop=stop)
    assert ended.stopped


def test_background_work_yields(tmp_path: Path, around: Surroundings) -> None:
    """It runs at a lower priority than the suites beside it."""
    command = python("import os; print(os.getpriority(os.PRIO_PROCESS, 0))")
    log = tmp_path / "log"
    run(("sh", "-c", f"{command[0]} -c '{command[2]}'"), around, log, limit_s=60, background=True)
    assert int(log.read_text()) > 0
