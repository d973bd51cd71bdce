"""Ends the process of a broker in which an invariant does not hold.

What is in memory can no longer be trusted, so nothing of it is flushed, handed over or closed in
order: the process halts, as Apache's does on a fatal fault (`ProcessTerminatingFaultHandler`), and
the next start treats the logs as after a crash. Before it does, it logs which invariant was
violated, the variables of the function that found it, all threads and all tasks.

Python leaves assertions out with `-O` or `PYTHONOPTIMIZE`; a broker does
not start so.
"""

import asyncio
import faulthandler
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from barnabas_broker.invariants import on_violation
from barnabas_broker.server.process.task_dump import format_tasks

log = logging.getLogger(__name__)

EXIT_CODE: Final = 70
"""EX_SOFTWARE of sysexits.h: an internal error of the program."""

HALT_WITHIN_S: Final = 10.0
"""How long logging may take, where standard error is a pipe without a reader; then the process
ends without."""


def assertions_are_checked() -> bool:
    """Whether Python runs assertions, and with them the invariants."""
    return __debug__


@contextmanager
def halt_on_violation(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Within the block a violated invariant ends this process; `loop` is that of the broker."""

    def halt(invariant: str, state: str) -> NoReturn:
        faulthandler.dump_traceback_later(HALT_WITHIN_S, exit=True)
        try:
            log.critical("Encountered fatal fault: invariant violated: %s\n%s", invariant, state)
            faulthandler.dump_traceback(all_threads=True)
            log.critical("Halting with exit code %d\n%s", EXIT_CODE, format_tasks(loop))
            sys.stderr.flush()
        finally:
            os._exit(EXIT_CODE)

    with on_violation(halt):
        yield
