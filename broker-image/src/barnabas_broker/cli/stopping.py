"""Being interrupted while records are read: noticed between two batches, never inside of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_flag() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which raise nothing the first time.

    An exception inside of a call of the client library could come in the middle of a callback. The
    second time they act as ever: output may wait for a reader that does not read.
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def stop(number: int, _: FrameType | None) -> None:
        stopped.set()
        signal.signal(number, before[signal.Signals(number)])

    for each in SIGNALS:
        signal.signal(each, stop)
    try:
        yield stopped
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
