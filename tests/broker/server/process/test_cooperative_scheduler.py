"""Long work in time slices between other work."""

import asyncio
from collections.abc import Callable

import pytest

from barnabas_broker.server.process.cooperative_scheduler import (
    TIME_SLICE_S,
    CooperativeScheduler,
    IterationBudget,
    RunQueue,
    Unfinished,
    Work,
    each,
)


class Clock:
    """Every reading finds that a time slice has passed."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 2 * TIME_SLICE_S
        return self.now


def counting(name: str, to: int, seen: list[str]) -> Work[str]:
    """Work of so many steps, each of which is noted."""
    for _ in range(to):
        seen.append(name)
        yield
    return name


def test_short_work_is_done_at_once() -> None:
    """Without a loop, even."""
    assert CooperativeScheduler(clock=lambda: 0.0).begin(each([1, 2, 3], str)) == ["1", "2", "3"]


def test_an_error_of_a_short_task_is_raised() -> None:
    """To the caller that began it."""
    with pytest.raises(ZeroDivisionError):
        CooperativeScheduler(clock=lambda: 0.0).begin(each([0], lambda number: 1 // number))


def test_long_works_share_the_loop_in_time_slices() -> None:
    """With each other and with all else; none waits for the end of another."""

    async def scenario() -> list[str]:
        scheduler, seen = CooperativeScheduler(clock=Clock()), list[str]()
        loop = asyncio.get_running_loop()
        works = [scheduler.begin(counting(name, 5, seen)) for name in "ab"]

        def other() -> None:
            seen.append("-")
            if seen.count("-") < 6:
                loop.call_soon(other)

        loop.call_soon(other)
        for work in works:
            assert isinstance(work, Unfinished)
            await work.future
        return seen

    seen = "".join(asyncio.run(scenario()))
    assert seen.startswith("aba-b-a-b-"), seen


def test_a_long_task_is_notified_after_yielding() -> None:
    """Once for each time, through the parts that it is made of."""

    def part(times: int) -> Work[list[bool]]:
        yielded: list[bool] = []
        while len(yielded) < times:
            yielded.append(bool((yield)))
        return yielded

    def whole() -> Work[list[bool]]:
        first = yield from part(2)
        return first + (yield from part(2))

    async def scenario(clock: Callable[[], float]) -> list[bool]:
        yielded = CooperativeScheduler(clock=clock).begin(whole())
        return await yielded.future if isinstance(yielded, Unfinished) else yielded

    assert asyncio.run(scenario(lambda: 0.0)) == [False] * 4
    assert asyncio.run(scenario(Clock())) == [True] * 4


def test_an_error_of_a_long_task_is_set_on_its_future() -> None:
    """And the next in the queue goes on."""

    async def scenario() -> None:
        scheduler = CooperativeScheduler(clock=Clock())
        wrong = scheduler.begin(each([1, 1, 1, 0], lambda number: 1 // number))
        right = scheduler.begin(each([1, 1, 1, 1], lambda number: 1 // number))
        assert isinstance(wrong, Unfinished)
        assert isinstance(right, Unfinished)
        with pytest.raises(ZeroDivisionError):
            await wrong.future
        assert await right.future == [1, 1, 1, 1]

    asyncio.run(scenario())


def test_the_task_of_a_closed_connection_is_dropped() -> None:
    """Its client has gone."""

    async def scenario() -> list[str]:
        scheduler, seen = CooperativeScheduler(clock=Clock()), list[str]()
        left = scheduler.begin(counting("left", 100, seen))
        stays = scheduler.begin(counting("stays", 4, seen))
        assert isinstance(left, Unfinished)
        assert isinstance(stays, Unfinished)
        left.future.cancel()
        await stays.future
        return seen

    assert asyncio.run(scenario()).count("left") == 1


def test_each_iteration_of_the_loop_runs_one_of_a_run_queue() -> None:
    """However many wait in it, and though each joins again at once."""

    async def scenario() -> list[str]:
        queue, seen, done = RunQueue(), list[str](), asyncio.Event()
        loop = asyncio.get_running_loop()

        def join(name: str) -> None:
            def turn() -> None:
                seen.append(name)
                if seen.count(name) < 3:
                    queue.join(turn)

            queue.join(turn)

        def other() -> None:
            seen.append("-")
            if seen.count("-") < 10:
                loop.call_soon(other)
            else:
                done.set()

        for name in "abc":
            join(name)
        loop.call_soon(other)
        await done.wait()
        return seen

    assert "".join(asyncio.run(scenario())) == "a-b-c-a-b-c-a-b-c--"


def test_every_iteration_of_the_loop_has_its_budget() -> None:
    """What is spent counts in its iteration alone; what is over it is not owed later."""

    async def scenario() -> None:
        budget = IterationBudget(2)
        assert not budget.is_over
        for _ in range(2):
            budget.spend(1)
            assert not budget.is_over
            budget.spend(5)
            assert budget.is_over
            await asyncio.sleep(0)
            assert not budget.is_over

    asyncio.run(scenario())
