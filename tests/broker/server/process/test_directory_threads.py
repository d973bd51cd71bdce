"""Work that waits for a disk waits for no other disk."""

import threading
from pathlib import Path

from barnabas_broker.server.process.directory_threads import DirectoryThreads
from tests.waiting import ANSWER, seconds

HANGS, WORKS = Path("/hangs"), Path("/works")


def test_a_directory_that_hangs_holds_up_no_other() -> None:
    """However much waits for it."""
    threads, free = DirectoryThreads("disk", 2), threading.Event()
    waiting = [threads.submit(HANGS, lambda: free.wait(seconds(ANSWER))) for _ in range(9)]
    try:
        done = threads.submit(WORKS, lambda: threading.current_thread().name)
        assert done.result(seconds(ANSWER)).startswith("disk")
        assert not any(it.done() for it in waiting)
    finally:
        free.set()
        threads.close()
    assert all(it.result() for it in waiting)
