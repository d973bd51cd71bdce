"""The controller: passes in threads, failures that stay with their cluster."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from barnabas_operator.handlers.controller import Controller
from barnabas_operator.handlers.health import Health
from barnabas_operator.handlers.metrics import Metrics
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.reconciler import Found, Key
from tests.waiting import START, seconds

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
        assert await asyncio.to_thread(self._enough.wait, seconds(START))


async def _until_enough(controller: Controller, work: Work, *asked: Key) -> None:
    running = asyncio.create_task(controller.run())
    for key in asked:
        controller.add(key)
    await work.enough()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def _found(*keys: Key, **errors: KubeError) -> Found:
    return Found(keys=frozenset(keys), errors=errors)


def _controller(work: Work, found: Found) -> Controller:
    return Controller(work, lambda: found, Metrics(Health()), resync_s=LONG)


def test_existing_resources_are_reconciled_at_startup() -> None:
    """A start of the operator reconciles everything."""
    work = Work({A: 1})

    async def scenario() -> None:
        await _until_enough(_controller(work, _found(A)), work)

    asyncio.run(scenario())
    assert work.passes == [A]


def test_an_event_is_a_pass() -> None:
    """Also of a cluster that did not exist at the start."""
    work = Work({B: 1})

    async def scenario() -> None:
        await _until_enough(_controller(work, _found()), work, B)

    asyncio.run(scenario())
    assert work.passes == [B]


@pytest.mark.parametrize("error", [KubeError(0, "unreachable"), RuntimeError("a mistake")])
def test_a_failure_is_retried_and_stays_with_its_cluster(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """The other cluster has its pass; the failed one has another."""
    work = Work({A: 2, B: 1})
    work.errors[A] = error

    async def scenario() -> None:
        await _until_enough(_controller(work, _found(A, B)), work)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert sorted(work.passes) == [A, A, B]
    assert "Reconciliation failed: cluster=ns/a" in caplog.text


def test_a_namespace_that_cannot_be_listed_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It may have been deleted, and the operator's rights with it."""
    work = Work({A: 1})

    async def scenario() -> None:
        controller = _controller(work, _found(A, gone=KubeError(403, "forbidden")))
        await _until_enough(controller, work)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert "Listing failed: namespace=gone forbidden" in caplog.text


def test_more_passes_hang_than_the_event_loop_has_threads() -> None:
    """Twenty that wait for their brokers leave a thread to the next."""
    release = threading.Event()
    hanging = [Key("ns", f"hanging-{number}") for number in range(20)]
    served = threading.Event()

    def work(key: Key) -> float:
        if key == A:
            served.set()
        else:
            assert release.wait(seconds(START))
        return LONG

    async def scenario() -> None:
        controller = Controller(work, lambda: _found(*hanging), Metrics(Health()), resync_s=LONG)
        running = asyncio.create_task(controller.run())
        controller.add(A)
        assert await asyncio.to_thread(served.wait, seconds(START))
        release.set()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())
