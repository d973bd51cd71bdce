"""The loop that works off the agenda: it waits, runs passes in threads, and looks for strays."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from barnabas_operator.handlers.agenda import Agenda
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.passes import Key

LOG: Final = logging.getLogger(__name__)

# Passes wait for servers most of the time; more of them at once would only queue there.
PASSES_AT_ONCE: Final = 4


class Loop:
    """Runs passes: `work` does one and returns the seconds until the next, `existing` lists all.

    Both may block and are called in threads. `ask` may be called from the event loop only.
    """

    def __init__(
        self,
        work: Callable[[Key], float],
        existing: Callable[[], frozenset[Key]],
        *,
        resync_s: float,
    ) -> None:
        self._work = work
        self._existing = existing
        self._resync_s = resync_s
        self._agenda = Agenda()
        self._woken = asyncio.Event()

    def ask(self, key: Key) -> None:
        """Have a cluster looked at now."""
        self._agenda.ask(key, asyncio.get_running_loop().time())
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._resync())
            clock = asyncio.get_running_loop().time
            while True:
                for key in self._agenda.take(clock(), PASSES_AT_ONCE):
                    tasks.create_task(self._pass(key))
                await self._wait(clock())

    async def _wait(self, now: float) -> None:
        due = self._agenda.next_due()
        full = len(self._agenda.running) >= PASSES_AT_ONCE
        delay = None if due is None or full else max(0.0, due - now)
        try:
            async with asyncio.timeout(delay):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()

    async def _pass(self, key: Key) -> None:
        clock = asyncio.get_running_loop().time
        try:
            again_in = await asyncio.to_thread(self._work, key)
        except KubeError as error:
            LOG.warning("%s: %s; again in %.0f s", key, error, self._agenda.failed(key, clock()))
        except Exception:
            # A pass is a boundary: what goes wrong with one cluster must not stop the others.
            LOG.exception("%s: failed; again in %.0f s", key, self._agenda.failed(key, clock()))
        else:
            self._agenda.done(key, clock(), again_in=again_in)
        self._woken.set()

    async def _resync(self) -> None:
        while True:
            try:
                existing = await asyncio.to_thread(self._existing)
            except KubeError as error:
                LOG.warning("cannot look for resources: %s", error)
            else:
                self._agenda.forget(existing)
                now = asyncio.get_running_loop().time()
                for key in existing - self._agenda.due.keys() - self._agenda.running:
                    self._agenda.ask(key, now)
                self._woken.set()
            await asyncio.sleep(self._resync_s)
