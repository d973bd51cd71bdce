"""Ctrl-C and SIGTERM while records are read."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from barnabas_broker.cli.stopping import stop_flag


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_flag_and_raises_nothing(number: signal.Signals) -> None:
    """What it meant before, it means again afterwards."""
    before = signal.getsignal(number)
    with stop_flag() as stopped:
        assert not stopped.is_set()
        os.kill(os.getpid(), number)
        assert stopped.is_set()
    assert signal.getsignal(number) is before


def test_the_second_time_it_acts_as_ever() -> None:
    """Where output waits for a reader that does not read, nobody looks at the flag."""
    with pytest.raises(KeyboardInterrupt), stop_flag() as stopped:  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        assert stopped.is_set()
        os.kill(os.getpid(), signal.SIGINT)


def test_another_thread_has_no_signals() -> None:
    """There the flag is left to others."""
    seen = []

    def wait() -> None:
        with stop_flag() as stopped:
            seen.append(stopped.is_set())

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    assert seen == [False]
