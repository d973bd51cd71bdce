"""A running broker says where its threads and tasks are when it gets SIGQUIT."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
from pathlib import Path

from barnabas_broker.server.process.task_dump import END_OF_DUMP, dump_on_sigquit, format_tasks
from tests.waiting import wait_for_async


async def _innermost(event: asyncio.Event) -> None:
    await event.wait()


async def _outer(event: asyncio.Event) -> None:
    await _innermost(event)


def test_tasks_are_shown_down_to_what_they_await() -> None:
    """A waiting task shows its coroutines in order; tasks in the same place are counted."""

    async def shown() -> str:
        event = asyncio.Event()
        tasks = [asyncio.create_task(_outer(event), name=f"waiter-{i}") for i in range(3)]
        await asyncio.sleep(0)
        text = format_tasks(asyncio.get_running_loop())
        event.set()
        await asyncio.gather(*tasks)
        return text

    text = asyncio.run(shown())
    assert "and 2 more in the same place" in text
    outer, inner = text.index("in _outer"), text.index("in _innermost")
    assert outer < inner < text.index("awaits a Future", inner)


def test_sigquit_dumps_threads_and_tasks(tmp_path: Path) -> None:
    """One signal writes the threads' stacks and then the tasks', and the process goes on."""
    dump = tmp_path / "dump"

    async def run() -> None:
        with dump.open("w") as stream:
            dump_on_sigquit(asyncio.get_running_loop(), stream)
            try:
                os.kill(os.getpid(), signal.SIGQUIT)
                await wait_for_async("the dump", dump.read_text, until=lambda it: END_OF_DUMP in it)
            finally:
                faulthandler.unregister(signal.SIGQUIT)

    asyncio.run(run())
    text = dump.read_text()
    assert "Current thread" in text or "most recent call first" in text
    assert "test_sigquit_dumps_threads_and_tasks" in text
    assert text.endswith(f"{END_OF_DUMP}\n")
