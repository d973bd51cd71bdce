"""Work on many logs of one directory, by a few threads, with word of how far it has come.

Checking a log after an unclean stop is reading and checksums, flushing one is waiting for the
device: both leave Python's lock alone, so threads help. Apache Kafka uses the same number of
threads per directory for both (num.recovery.threads.per.data.dir).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

_log = logging.getLogger(__name__)

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

#: A line at most this often.
PROGRESS_INTERVAL_S = 5.0


class Steps(Protocol):
    """What counts pieces of work; `step` returns a line for the log when it is time for one."""

    def step(self, now_s: float) -> str | None:
        """One more is done."""
        ...


class Progress:
    """Says how far work in ``directory`` has come; pure, all times in seconds of one clock."""

    __slots__ = ("_began_s", "_directory", "_done", "_spoke_s", "_total", "_verb")

    def __init__(self, verb: str, directory: Path, total: int, now_s: float) -> None:
        self._verb = verb
        self._directory = directory
        self._total = total
        self._done = 0
        self._began_s = self._spoke_s = now_s

    def step(self, now_s: float) -> str | None:
        """One more is done; a line for the log when it is time for one."""
        self._done += 1
        if now_s - self._spoke_s < PROGRESS_INTERVAL_S or self._done == self._total:
            return None
        self._spoke_s = now_s
        left_s = (now_s - self._began_s) / self._done * (self._total - self._done)
        return (
            f"{self._verb} {self._done:,} of {self._total:,} logs in {self._directory}, "
            f"{left_s:.0f} s left"
        )


def each(
    work: Sequence[Callable[[], _Result]],
    *,
    threads: int,
    progress: Callable[[float], Steps],
    clock_s: Callable[[], float],
) -> list[_Result]:
    """Run all of ``work``, results in its order; the first error is raised, the rest not begun.

    ``progress`` makes what speaks of it from the time it begins.
    """
    said = progress(clock_s())
    results: list[_Result] = []
    if threads <= 1 or len(work) <= 1:
        for call in work:
            results.append(call())
            _say(said.step(clock_s()))
        return results
    with ThreadPoolExecutor(threads, "logs") as pool:
        futures = [pool.submit(call) for call in work]
        try:
            for future in as_completed(futures):
                future.result()
                _say(said.step(clock_s()))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


class GivenUpError(Exception):
    """The work was cancelled."""


def unless(given_up: Callable[[], bool], call: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Work that is not begun once it is given up: it raises GivenUpError then."""

    def begin(*args: _P.args, **named: _P.kwargs) -> _Result:
        if given_up():
            raise GivenUpError
        return call(*args, **named)

    return begin


def _say(line: str | None) -> None:
    if line is not None:
        _log.info(line)
