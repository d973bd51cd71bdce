"""Processes that outlive the command that started them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_operator.local import processes
from barnabas_operator.local.processes import Entry
from tests.waiting import START, seconds, wait_for

SLEEPER = "import time; print('awake', flush=True); time.sleep(100)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
LEFT_BY_ITS_FIRST_THREAD = f"""
import ctypes, threading
threading.Thread(target=exec, args=({SLEEPER!r},)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPER!r}])"


class Nursery:
    """Starts processes and sees to their end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "log"
        self.pid_file = directory / "pid"
        self._started: list[Entry] = []

    def start(self, code: str, *, says: str = "") -> Entry:
        """Start a Python program and wait until it says something."""
        entry = processes.launch(
            [sys.executable, "-c", code],
            directory=self.directory,
            log=self.log,
            pid_file=self.pid_file,
            fingerprint="f",
        )
        self._started.append(entry)
        wait_for(
            f"{says!r} in the log, or the end of the process",
            lambda: (self.log.read_text(), entry.running),
            until=lambda seen: says in seen[0] or not seen[1],
            within=START,
        )
        return entry

    def close(self) -> None:
        """End all of them."""
        for entry in self._started:
            processes.abandon(entry, timeout_s=0.0)


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    """A place to start processes in."""
    nursery = Nursery(tmp_path)
    yield nursery
    nursery.close()


def test_a_process_is_found_again_by_its_file(nursery: Nursery) -> None:
    """In a session of its own, so that Ctrl-C in the terminal does not reach it."""
    entry = nursery.start(SLEEPER, says="awake")
    assert processes.read_entry(nursery.pid_file) == entry
    assert entry.running
    assert os.getsid(entry.pid) == entry.pid
    assert processes.stop(entry, timeout_s=seconds(START))
    assert not entry.running


def test_a_reused_pid_is_left_alone(nursery: Nursery) -> None:
    """The number is the same, the start is not: it is not ours to stop."""
    entry = nursery.start(SLEEPER, says="awake")
    stale = Entry(pid=entry.pid, started="another boot/1", fingerprint="f")
    assert not stale.running
    assert processes.stop(stale, timeout_s=0.0)
    assert entry.running


def test_a_process_that_has_ended_is_not_running(nursery: Nursery) -> None:
    """Also while nobody has waited for it."""
    entry = nursery.start("print('done')", says="never")
    assert not entry.running
    assert processes.last_words(nursery.log) == "done"


def test_a_process_is_running_while_one_of_its_threads_is(nursery: Nursery) -> None:
    """The kernel calls it a zombie when its first thread has ended; its ports are still open."""
    entry = nursery.start(LEFT_BY_ITS_FIRST_THREAD, says="awake")
    state = Path("/proc", str(entry.pid), "stat")
    wait_for(
        "the end of the first thread",
        lambda: state.read_text().rpartition(")")[2].split()[0],
        until=lambda letter: letter == "Z",
    )
    assert entry.running
    processes.abandon(entry, timeout_s=seconds(START))
    assert not entry.running


def test_a_process_that_ignores_sigterm_is_reported(nursery: Nursery) -> None:
    """Nothing is killed unless it has nothing to lose."""
    entry = nursery.start(DEAF, says="awake")
    assert not processes.stop(entry, timeout_s=0.0)
    assert entry.running
    processes.abandon(entry, timeout_s=0.1)
    assert not entry.running


def test_the_log_of_the_run_before_is_kept(nursery: Nursery) -> None:
    """One of them: logs do not grow for ever."""
    for word in ("first", "second"):
        nursery.start(f"print({word!r})", says=word)
    assert processes.last_words(nursery.log) == "second"
    assert processes.last_words(nursery.directory / "log.1") == "first"
    assert processes.last_words(nursery.directory / "none") == ""


def test_memory_is_that_of_all_it_started(nursery: Nursery) -> None:
    """A pipeline is Python and a JVM."""
    alone = processes.resident_bytes(nursery.start(SLEEPER, says="awake").pid)
    both = processes.resident_bytes(nursery.start(PARENT, says="awake").pid)
    assert alone is not None
    assert both is not None
    assert 1 << 20 < alone < both


def test_ps_says_the_same_of_a_process_each_time(nursery: Nursery) -> None:
    """Where there is no /proc, the start is what ps says."""
    entry = nursery.start(SLEEPER, says="awake")
    first = processes.start_by_ps(entry.pid)
    # A system without either of the two cannot run this at all.
    assert bool(first) == (shutil.which("ps") is not None)
    assert processes.start_by_ps(entry.pid) == first
    processes.stop(entry, timeout_s=seconds(START))
    assert processes.start_by_ps(entry.pid) is None


@pytest.mark.parametrize("content", ["", "12", "{}", '{"pid": 1}', "not json"])
def test_an_unreadable_pid_file_names_no_process(tmp_path: Path, content: str) -> None:
    """Neither does one that is not there."""
    path = tmp_path / "pid"
    path.write_text(content)
    assert processes.read_entry(path) is None
    assert processes.read_entry(tmp_path / "none") is None


def test_a_process_lacks_variables_that_are_none_of_its(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others it has."""
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("NAMED", "named")
    log = tmp_path / "log"
    entry = processes.launch(
        [sys.executable, "-c", "import os; print(os.getenv('KEPT'), os.getenv('NAMED'))"],
        directory=tmp_path,
        log=log,
        pid_file=tmp_path / "pid",
        fingerprint="f",
        without=("NAMED",),
    )
    wait_for("the end of the process", lambda: entry.running, until=lambda it: not it)
    assert processes.last_words(log) == "kept None"
