"""Leadership is handed back by the controller, if that is wanted."""

from __future__ import annotations

import asyncio

import pytest

from barnabas_broker.controller.isr_changes import InSyncChange, IsrRequest
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.server.background.leader_balance import LeaderBalance
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_kafka.errors import ErrorCode, KafkaError
from tests.broker.controller.ensemble import NOW_MS, Cluster, Lost
from tests.waiting import wait_for_async


def led_elsewhere(settings: dict[str, str] | None = None) -> Cluster:
    """A cluster whose one partition is led by another than its preferred replica."""
    cluster = Cluster(2, settings)
    cluster.create(NewTopic(name="t", assignments=[(0, (2, 1))]))
    cluster.kill(2)
    cluster.start(2)
    state = cluster.image.topics["t"].partitions[0]
    change = InSyncChange("t", 0, state.leader_epoch, state.partition_epoch, (1, 2))
    request = IsrRequest(1, cluster.image.brokers[1].epoch, [change], version=1)
    cluster.active_controller.alter_partitions(request, now_ms=NOW_MS)
    cluster.settle()
    return cluster


@pytest.mark.parametrize(
    ("settings", "broker", "handed_back"),
    [
        ({}, 1, 1),
        ({}, 2, 0),
        ({"auto.leader.rebalance.enable": "false"}, 1, 0),
        ({"leader.imbalance.per.broker.percentage": "100"}, 1, 0),
    ],
)
def test_leadership_is_handed_back(settings: dict[str, str], broker: int, handed_back: int) -> None:
    """By the controller only, and only where too much of it is elsewhere."""
    cluster = led_elsewhere(settings)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        controller = cluster.controllers[broker]
        thread = ControllerThread(controller, loop=loop, clock_ms=lambda: NOW_MS)
        balance = LeaderBalance(thread, lambda: NOW_MS)
        balance.start()
        try:
            assert await balance.look() == handed_back
        finally:
            await balance.stop()
            await thread.stop()

    asyncio.run(scenario())
    leader = cluster.active_controller.image.topics["t"].partitions[0].leader
    assert leader == (2 if handed_back else 1)


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR), ValueError("a bug")])
def test_a_look_that_fails_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """Whatever it meets: the next one balances."""
    cluster = led_elsewhere({"leader.imbalance.check.interval.seconds": "1"})

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        thread = ControllerThread(cluster.controllers[1], loop=loop, clock_ms=lambda: NOW_MS)
        balance = LeaderBalance(thread, lambda: NOW_MS)
        looked, look, failures = asyncio.Event(), balance.look, [error]

        async def failing() -> int:
            if failures:
                raise failures.pop()
            moved = await look()
            looked.set()
            return moved

        monkeypatch.setattr(balance, "look", failing)
        balance.start()
        try:
            await looked.wait()
        finally:
            await balance.stop()
            await thread.stop()

    asyncio.run(scenario())
    assert str(error) in caplog.text
    assert cluster.active_controller.image.topics["t"].partitions[0].leader == 2


def test_an_ensemble_that_does_not_answer_postpones_it(caplog: pytest.LogCaptureFixture) -> None:
    """No task has failed then: what keeps the connection says what is wrong."""
    cluster = led_elsewhere({"leader.imbalance.check.interval.seconds": "1"})

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        thread = ControllerThread(cluster.controllers[1], loop=loop, clock_ms=lambda: NOW_MS)
        balance = LeaderBalance(thread, lambda: NOW_MS)
        cluster.stores[1].losses += [Lost.REQUEST] * 2
        balance.start()
        try:
            await wait_for_async(
                "the leader",
                lambda: cluster.active_controller.image.topics["t"].partitions[0].leader,
                until=lambda leader: leader == 2,
            )
        finally:
            await balance.stop()
            await thread.stop()

    asyncio.run(scenario())
    postponed = [it for it in caplog.messages if it.startswith("Task postponed: leader balance")]
    assert len(postponed) == 1
    assert "the connection was lost" in postponed[0]
    assert "Task failed" not in caplog.text
