"""The cleaner process: ``python -m barnabas_broker.log.cleaner.worker``.

Reads one job from standard input, runs it, and reports on standard output. A process of its own,
because the interpreter's lock would make the event loop wait for every stretch of a cleaner
thread; and because its memory goes back to the machine when it ends. It runs at the lowest
priority and dies with the broker: a cleaner that outlived it would write into a directory that
the next broker has taken.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from barnabas_broker.log.batches import CorruptSegmentError
from barnabas_broker.log.cleaner import job
from barnabas_broker.log.cleaner.cleaning import Cleaning
from barnabas_broker.log.cleaner.job import Failed, Job, Message, Trouble
from barnabas_broker.log.indexes import CorruptIndexError
from barnabas_kafka.records.batch import CorruptBatch

_PR_SET_PDEATHSIG = 1
_NICENESS = 10


def main() -> int:
    """Do the job on standard input; the exit status is 0 whatever became of it."""
    _die_with(int(sys.argv[1]))
    os.nice(_NICENESS)
    received = job.decode(sys.stdin.buffer.readline())
    if not isinstance(received, Job):
        raise TypeError(f"{type(received).__name__} is no job")
    _send(do(received))
    return 0


def do(received: Job) -> Message:
    """Run a job, reporting its groups; returns how it ended."""
    try:
        return Cleaning(received, _send).run()
    except (CorruptSegmentError, CorruptBatch, CorruptIndexError) as error:
        return Failed(trouble=Trouble.CORRUPT, reason=str(error))
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        reason = f"{error.strerror or error}{name}"
        return Failed(trouble=Trouble.IO, reason=reason, errno=error.errno or 0)


def _send(message: Message) -> None:
    os.write(sys.stdout.fileno(), job.encode(message))


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the broker has gone already")


if __name__ == "__main__":
    sys.exit(main())
