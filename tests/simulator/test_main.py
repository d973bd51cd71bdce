"""The command that runs schedules."""

import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

SOON_S = 60


def processes_of(parent: int) -> list[int]:
    """The processes that it has started."""
    return list(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))


def test_who_is_told_to_stop_leaves_no_process_behind() -> None:
    """As a time limit does: SIGTERM, to the first process alone."""
    command = [sys.executable, "-m", "simulator", "--count", "100000", "--processes", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as main:
        give_up_at = monotonic() + SOON_S
        pause = threading.Event()
        while len(started := processes_of(main.pid)) < 2:
            assert main.poll() is None
            assert monotonic() < give_up_at
            pause.wait(0.05)
        main.terminate()
        assert main.wait(SOON_S) != 0
    assert [each for each in started if Path(f"/proc/{each}").exists()] == []
