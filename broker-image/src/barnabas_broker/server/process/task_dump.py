"""Dumps the stacks of all threads and tasks on SIGQUIT, as `kill -3` does for a JVM.

The threads are dumped from within the signal handler, so that a broker whose event loop does not
turn shows where it hangs. The tasks follow from the event loop: one that waits is shown with the
chain of coroutines down to what it awaits, and tasks that wait in the same place are counted.
"""

import asyncio
import faulthandler
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TextIO

END_OF_DUMP: Final = "End of task dump"
"""The last line of a dump."""


def dump_on_sigquit(loop: asyncio.AbstractEventLoop, stream: TextIO | None = None) -> None:
    """Write threads and tasks to `stream` (standard error) whenever SIGQUIT arrives.

    Call it in the main thread. The threads' stacks need a `stream` with a file descriptor.
    """
    to = stream or sys.stderr

    def dump_tasks() -> None:
        to.write(f"{format_tasks(loop)}{END_OF_DUMP}\n")
        to.flush()

    # The loop's handler first: faulthandler writes the threads, then calls what was there before.
    loop.add_signal_handler(signal.SIGQUIT, dump_tasks)
    faulthandler.register(signal.SIGQUIT, file=to, all_threads=True, chain=True)


def format_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """The tasks of a loop and where they wait, the most frequent place first."""
    stacks: Counter[str] = Counter()
    names: dict[str, str] = {}
    for task in asyncio.all_tasks(loop):
        stack = "".join(f"    {line}\n" for line in _frames(task.get_coro()))
        stacks[stack] += 1
        names.setdefault(stack, task.get_name())
    lines = [f"Task dump: {stacks.total()} tasks\n"]
    for stack, count in stacks.most_common():
        more = f" and {count - 1} more in the same place" if count > 1 else ""
        lines.append(f"  {names[stack]}{more}\n{stack}")
    return "".join(lines)


def _frames(awaited: Any) -> Iterator[str]:
    """From the outermost coroutine down to what is awaited at last."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is None:
            yield f"awaits a {type(awaited).__name__}"
            return
        code = frame.f_code
        yield f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
