"""The loop: passes in threads, failures that stay with their cluster."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from barnabas_operator.handlers.shell import Loop
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.passes import Key

A, B = Key("ns", "a"), Key("ns", "b")
LONG = 3600.0


class Work:
    """Passes that are counted; it is enough when each of the clusters had so many."""

    def __init__(self, wanted: dict[Key, int]) -> None:
        self.passes: list[Key] = []
        self.errors: dict[Key, Exception] = {}
        self._wanted = wanted
        self._enough = threading.Event()

    def __call__(self, key: Key) -> float:
        """One pass."""
        self.passes.append(key)
        if all(self.passes.count(each) >= times for each, times in self._wanted.items()):
            self._enough.set()
        if key in self.errors:
            raise self.errors.pop(key)
        return LONG

    async def enough(self) -> None:
        """Wait for it."""
        assert await asyncio.to_thread(self._enough.wait, 60)


async def _until_enough(loop: Loop, work: Work, *asked: Key) -> None:
    running = asyncio.create_task(loop.run())
    for key in asked:
        loop.ask(key)
    await work.enough()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_what_exists_is_looked_at_without_being_asked() -> None:
    """A start of the operator is a look at everything."""
    work = Work({A: 1})

    async def story() -> None:
        await _until_enough(Loop(work, lambda: frozenset({A}), resync_s=LONG), work)

    asyncio.run(story())
    assert work.passes == [A]


def test_an_event_is_a_pass() -> None:
    """Also of a cluster that did not exist at the start."""
    work = Work({B: 1})

    async def story() -> None:
        await _until_enough(Loop(work, frozenset, resync_s=LONG), work, B)

    asyncio.run(story())
    assert work.passes == [B]


@pytest.mark.parametrize("error", [KubeError(0, "unreachable"), RuntimeError("a mistake")])
def test_a_failure_is_tried_again_and_stays_with_its_cluster(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The other cluster has its pass; the failed one has another."""
    work = Work({A: 2, B: 1})
    work.errors[A] = error

    async def story() -> None:
        await _until_enough(Loop(work, lambda: frozenset({A, B}), resync_s=LONG), work)

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert sorted(work.passes) == [A, A, B]
    assert "ns/a" in caplog.text


def test_an_api_server_that_cannot_be_listed_does_not_end_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Events still come, and the next look may succeed."""
    work = Work({A: 1})

    def existing() -> frozenset[Key]:
        raise KubeError(0, "unreachable")

    async def story() -> None:
        await _until_enough(Loop(work, existing, resync_s=LONG), work, A)

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert "cannot look for resources" in caplog.text
