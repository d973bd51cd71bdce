"""Work on many logs: in order, in threads, with progress, stopping at the first error."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from barnabas_broker.log import parallel
from barnabas_broker.log.parallel import Progress
from tests.waiting import ANSWER, seconds

DATA = Path("/data")


def progress(total: int) -> Callable[[float], Progress]:
    return partial(Progress, "recovered", DATA, total)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_the_work(threads: int) -> None:
    """However many threads there are."""
    work = [partial(int, number) for number in range(20)]
    done = parallel.each(work, threads=threads, progress=progress(20), clock_s=lambda: 0.0)
    assert done == list(range(20))


def test_threads_work_side_by_side() -> None:
    """Three pieces that wait for each other end only if three run at once."""
    barrier = threading.Barrier(3, timeout=seconds(ANSWER))
    parallel.each([barrier.wait] * 3, threads=3, progress=progress(3), clock_s=lambda: 0.0)
    assert not barrier.broken


def test_progress_names_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    """A line every few seconds, and none for the last one: what follows says that it is over."""
    caplog.set_level(logging.INFO)
    clock = count()
    work = [partial(int)] * 12
    parallel.each(work, threads=1, progress=progress(12), clock_s=lambda: float(next(clock)))
    assert caplog.messages == [
        "recovered 5 of 12 logs in /data, 7 s left",
        "recovered 10 of 12 logs in /data, 2 s left",
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_ends_it(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised as it was, and what was not begun is left."""
    begun: list[int] = []
    cancelled = threading.Event()
    shutdown = ThreadPoolExecutor.shutdown

    def cancel(
        pool: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False
    ) -> None:
        shutdown(pool, wait=False, cancel_futures=cancel_futures)
        cancelled.set()
        shutdown(pool, wait=wait)

    def fail() -> None:
        raise OSError("broken")

    def begin(number: int) -> None:
        begun.append(number)
        cancelled.wait(seconds(ANSWER))

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", cancel)
    work: list[Callable[[], None]] = [fail, *(partial(begin, number) for number in range(1000))]
    with pytest.raises(OSError, match="broken"):
        parallel.each(work, threads=threads, progress=progress(1001), clock_s=lambda: 0.0)
    assert len(begun) <= threads
