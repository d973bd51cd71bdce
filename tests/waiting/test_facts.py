"""A wait that runs out says why: a planted lost wake-up and a planted slow machine differ."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.waiting import NotInTimeError, forget, wait_for, wait_for_async, watch
from tests.waiting.facts import judge
from tests.waiting.processes import Usage, watched

#: Sets its fact after a second of work, unless the wake-up for it is lost; dumps like a broker.
WORKER = """
import asyncio, sys, time
from pathlib import Path
from barnabas_broker.server.process.task_dump import dump_on_sigquit

async def serve(fact, lost):
    dump_on_sigquit(asyncio.get_running_loop())
    Path(fact + ".ready").touch()
    if lost:
        await the_wake_up_that_is_lost(asyncio.Event())
    while time.process_time() < 30:
        sum(range(1000))
    Path(fact).touch()

async def the_wake_up_that_is_lost(event):
    await event.wait()

asyncio.run(serve(sys.argv[1], sys.argv[2] == "lost"))
"""
SPINNER = "print('spins', flush=True)\nwhile True: pass"
SPINNERS = 6


def start(directory: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A Python process whose output goes to `log` in the directory."""
    with (directory / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=log, stderr=log)


@contextmanager
def planted(directory: Path, kind: str) -> Iterator[Path]:
    """A worker that loses its wake-up, or works; the file that it is waited for."""
    fact = directory / "fact"
    process = start(directory, WORKER, str(fact), kind)
    try:
        wait_for("the worker", Path(f"{fact}.ready").exists)
        watch("worker", process.pid, directory / "log", dumps=True)
        yield fact
    finally:
        forget(process.pid)
        process.kill()
        process.wait()


@contextmanager
def slow_machine(directory: Path) -> Iterator[None]:
    """One processor for this process and its children, which others want too."""
    allowed = os.sched_getaffinity(0)
    with ExitStack() as stack:
        os.sched_setaffinity(0, {min(allowed)})
        stack.callback(os.sched_setaffinity, 0, allowed)
        for _ in range(SPINNERS):
            spinner = start(directory, SPINNER)
            stack.callback(spinner.wait)
            stack.callback(spinner.kill)
        log = directory / "log"
        wait_for("the spinners", log.read_bytes, until=lambda it: it.count(b"spins") == SPINNERS)
        yield


def failure(fact: Path) -> str:
    """What is said of a short wait for the file that runs out."""
    with pytest.raises(NotInTimeError) as failed:
        wait_for("the file of the worker", fact.exists, within=0.5)
    return str(failed.value)


def test_a_lost_wake_up_is_called_idle(tmp_path: Path) -> None:
    """The report names the fact, its last state, and the place where the task waits for ever."""
    with planted(tmp_path, "lost") as fact:
        text = failure(fact)
    assert "not in time: the file of the worker" in text
    assert "last state: False" in text
    assert "verdict: IDLE" in text
    assert "in the_wake_up_that_is_lost" in text


def test_a_slow_machine_is_called_starved(tmp_path: Path) -> None:
    """A worker that wants to run and is not let is told from one that has nothing to do."""
    with slow_machine(tmp_path), planted(tmp_path, "works") as fact:
        text = failure(fact)
    assert "verdict: STARVED" in text
    assert "verdict: IDLE" not in text


def test_a_stopped_process_is_called_stopped(tmp_path: Path) -> None:
    """A process under SIGSTOP neither runs nor dumps, and the report says why."""
    with planted(tmp_path, "lost") as fact:
        (worker,) = watched()
        os.kill(worker.pid, signal.SIGSTOP)
        text = failure(fact)
    assert "verdict: STOPPED" in text


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (Usage(state="S", ran_s=0.1, starved_s=0.1), "IDLE"),
        (Usage(state="R", ran_s=9.0, starved_s=0.5), "BUSY"),
        (Usage(state="R", ran_s=1.0, starved_s=8.0), "STARVED"),
        (Usage(state="R", ran_s=5.0, starved_s=5.0), "STARVED"),
        (Usage(state="T"), "STOPPED"),
        (Usage(state="Z"), "ENDED"),
        (Usage(state=""), "ENDED"),
    ],
)
def test_verdicts(after: Usage, expected: str) -> None:
    """What a process did in ten seconds decides, whatever the machine as a whole was like."""
    for available in (1.0, 0.1):
        verdict = judge(10, available, {7: Usage(state="S")}, {7: after})
        assert verdict.startswith(f"verdict: {expected}")


def test_the_fact_is_returned_once_it_holds() -> None:
    """The value that was waited for comes back, after states that did not hold and errors."""
    states: Iterator[int | Exception] = iter([KeyError("not there yet"), 1, 2, 3])

    def read() -> int:
        state = next(states)
        if isinstance(state, Exception):
            raise state
        return state

    assert wait_for("three", read, until=lambda it: it == 3, retry=(KeyError,)) == 3


def test_an_error_that_is_no_state_passes_through() -> None:
    """What was not named as a state of waiting is a failure at once."""
    with pytest.raises(ZeroDivisionError):
        wait_for("nothing", lambda: 1 / 0, retry=(KeyError,))


def test_an_error_is_a_last_state() -> None:
    """The report of a wait that only met errors shows the last."""

    def read() -> bool:
        raise KeyError("still missing")

    with pytest.raises(NotInTimeError, match="still missing"):
        wait_for("a key", read, within=0.01, retry=(KeyError,))


def test_a_wait_on_an_event_loop_lets_it_turn() -> None:
    """The loop's own callbacks make the fact true while it is waited for."""

    async def run() -> list[int]:
        facts: list[int] = []
        asyncio.get_running_loop().call_later(0, facts.append, 1)
        return await wait_for_async("a callback", lambda: facts)

    assert asyncio.run(run()) == [1]
