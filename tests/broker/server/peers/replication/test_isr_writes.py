"""A leader that writes who is in sync, and has the controller told of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from uuid import UUID

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.replica.isr_notices import LINGER_MS
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.peers.replication import isr_writes
from barnabas_broker.server.peers.replication.isr_writes import IsrWrites
from barnabas_broker.zk.store import CoordinationError
from barnabas_broker.zk.znodes import IsrChangeZnode
from barnabas_kafka.ids import TopicPartition
from tests.broker.controller.ensemble import NOW_MS, Cluster
from tests.waiting import ANSWER, seconds

T0 = TopicPartition("t", 0)


class Leader:
    """Broker 2, which leads t-0, with a clock that stands still until it is told."""

    def __init__(self) -> None:
        self.cluster = Cluster(2)
        self.cluster.create(NewTopic(name="t", assignments=[(0, (2, 1))]))
        self.controller = self.cluster.controllers[2]
        self.now_ms = 0
        #: raised in turn instead of telling the controller
        self.failures: list[Exception] = []

    @property
    def notes(self) -> list[str]:
        """What the controller has not read yet."""
        return self.cluster.stores[1].children(IsrChangeZnode.ROOT)

    def live(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write, and have the controller told."""

        async def whole() -> None:
            loop = asyncio.get_running_loop()
            thread = ControllerThread(self.controller, loop=loop, clock_ms=lambda: NOW_MS)
            reported, tell = asyncio.Event(), self.controller.notify_controller

            def telling(partitions: Collection[TopicPartition], *, now_ms: int) -> None:
                if self.failures:
                    raise self.failures.pop()
                tell(partitions, now_ms=now_ms)
                loop.call_soon_threadsafe(reported.set)

            monkeypatch.setattr(self.controller, "notify_controller", telling)
            writes = IsrWrites(thread, monotonic_ms=lambda: self.now_ms, clock_ms=lambda: NOW_MS)
            try:
                await self.write(writes)
                assert self.notes == []
                self.now_ms += LINGER_MS + 1
                writes.start()
                await asyncio.wait_for(reported.wait(), seconds(ANSWER))
            finally:
                await writes.stop()
                await thread.stop()

        asyncio.run(whole())

    async def write(self, writes: IsrWrites) -> None:
        """Leave the other broker out."""
        state = self.controller.image.topics["t"].partitions[0]
        written = await writes.alter(T0, UUID(int=0), replace(state, isr=(2,)))
        assert (written.isr, written.partition_epoch) == ((2,), state.partition_epoch + 1)


def test_the_isr_is_written_and_then_propagated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller reads it when it hears of it."""
    leader = Leader()
    leader.live(monkeypatch)
    leader.cluster.settle()
    assert leader.cluster.leaders("t") == [(2, (2,))]


def test_a_failed_notification_is_sent_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """When there is an ensemble again."""
    monkeypatch.setattr(isr_writes, "CHECK_MS", 1)
    leader = Leader()
    leader.failures.append(CoordinationError("it is away"))
    with caplog.at_level(logging.WARNING):
        leader.live(monkeypatch)
    assert "Task postponed: notifying of ISR changes" in caplog.text
    assert "Task failed" not in caplog.text
    assert len(leader.notes) == 1


def test_an_unexpected_failure_does_not_end_isr_propagation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug is logged with its traceback, and the controller is told the next time."""
    monkeypatch.setattr(isr_writes, "CHECK_MS", 1)
    leader = Leader()
    leader.failures.append(ValueError("a bug"))
    leader.live(monkeypatch)
    assert "Task failed: notifying of ISR changes; restart in" in caplog.text
    assert "ValueError: a bug" in caplog.text
    assert len(leader.notes) == 1
