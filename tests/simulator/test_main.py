"""The command that runs schedules."""

import subprocess
import sys
from pathlib import Path

from tests.waiting import START, seconds, wait_for


def processes_of(parent: int) -> list[int]:
    """The processes that it has started."""
    return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))


def test_sigterm_leaves_no_process_behind() -> None:
    """As a time limit does: SIGTERM, to the first process alone."""
    command = [sys.executable, "-m", "simulator", "--count", "100000", "--processes", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as main:
        started = wait_for(
            "two processes of the simulator",
            lambda: processes_of(main.pid),
            until=lambda found: len(found) == 2,
            within=START,
        )
        main.terminate()
        assert main.wait(seconds(START)) != 0
    assert [each for each in started if Path(f"/proc/{each}").exists()] == []
