"""Being interrupted while records are read: noticed between two batches, never inside of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_flag() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which raise nothing meanwhile.

    An exception inside of a call of the client library could come in the middle of a callback.
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = [signal.signal(each, lambda *_: stopped.set()) for each in SIGNALS]
    try:
        yield stopped
    finally:
        for each, handler in zip(SIGNALS, before, strict=True):
            signal.signal(each, handler)
