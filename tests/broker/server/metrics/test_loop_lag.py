"""How late the event loop is."""

import asyncio
import time

from barnabas_broker.server.metrics.loop_lag import INTERVAL_S, LoopLag


def test_a_blocked_loop_is_noticed() -> None:
    """Work that holds the loop shows as lag of that length."""

    async def hold_up() -> LoopLag:
        lag = LoopLag()
        lag.start()
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        loop.call_later(INTERVAL_S / 2, time.sleep, 3 * INTERVAL_S)  # What must never be done.
        loop.call_later(4 * INTERVAL_S, woken.set_result, None)
        await woken
        lag.stop()
        return lag

    lag = asyncio.run(hold_up())
    assert lag.times.count >= 1
    assert lag.times.sum >= 2 * INTERVAL_S * 1_000_000


def test_work_is_busy_time_and_sleep_is_not() -> None:
    """The CPU time of the loop's thread since the measure began; it only grows."""

    async def work() -> tuple[float, float]:
        lag = LoopLag()
        lag.start()
        before = lag.busy_s
        while (after := lag.busy_s) < before + INTERVAL_S:
            pass
        lag.stop()
        return before, after

    before, after = asyncio.run(work())
    assert after - before >= INTERVAL_S
