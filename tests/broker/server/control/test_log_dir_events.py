"""When the controller is told that log directories of this broker have changed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas_broker.server.control.log_dir_events import LogDirEvents
from barnabas_kafka.ids import TopicPartition

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Thread:
    """A controller's thread that does its work at once, and counts the notes left."""

    def __init__(self, *, shared: bool = True, error: Exception | None = None) -> None:
        self.shared = shared
        self.notes = 0
        self._error = error

    def run(self, work: Any) -> asyncio.Future[None]:
        """Do it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._error is None:
            work(SimpleNamespace(propagate_log_dir_event=self._note))
            done.set_result(None)
        else:
            done.set_exception(self._error)
        return done

    def _note(self, *, now_ms: int) -> None:
        assert now_ms == 5
        self.notes += 1


class Led:
    """What this broker leads out of a directory that takes nothing, though others could."""

    def __init__(self) -> None:
        self.partitions: frozenset[TopicPartition] = frozenset()

    def counted_out_leaders(self) -> frozenset[TopicPartition]:
        """All of it."""
        return self.partitions


def events(thread: Any, led: Led) -> LogDirEvents:
    return LogDirEvents(thread, led, lambda: 5)


def test_every_state_change_of_a_directory_is_reported() -> None:
    """Whether it fails or recovers; one that has nobody to tell says nothing."""

    async def scenario() -> None:
        thread, alone = Thread(), Thread(shared=False)
        for _ in range(2):
            events(thread, Led()).send()
            events(alone, Led()).send()
        assert (thread.notes, alone.notes) == (2, 0)

    asyncio.run(scenario())


def test_caught_up_peers_are_reported_once() -> None:
    """Then they can lead what is led out of a full directory; nothing else is news."""

    async def scenario() -> None:
        thread, led = Thread(), Led()
        reported = events(thread, led)
        reported.look()
        assert thread.notes == 0
        for partitions, notes in (
            ({ONE}, 1),
            ({ONE}, 1),
            ({ONE, OTHER}, 2),
            ({OTHER}, 2),
            ({ONE}, 3),
        ):
            led.partitions = frozenset(partitions)
            reported.look()
            reported.look()
            assert thread.notes == notes

    asyncio.run(scenario())


def test_a_failure_is_logged_and_no_more() -> None:
    """The caller has other things to do."""

    async def scenario() -> None:
        events(Thread(error=KeyError("x")), Led()).send()

    asyncio.run(scenario())
