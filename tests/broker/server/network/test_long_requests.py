"""What requests are estimated to cost, and in which order long ones are served."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter, thread_time

import pytest

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network.long_requests import (
    CLIENTS_MAX,
    DUE_WITHIN_S,
    ITERATION_LONG_S,
    LONG_REQUEST_S,
    PRESUMED_S,
    LongRequests,
    clock_for,
    next_cost,
)


def test_the_first_long_request_is_measured_with_what_ran_meanwhile() -> None:
    """Its thread may have been put aside: the next one is measured by the processor's time."""
    assert clock_for(0.0) is perf_counter
    cost = next_cost(0.0, 0.5)
    assert cost == PRESUMED_S > LONG_REQUEST_S
    assert clock_for(cost) is thread_time
    assert next_cost(cost, 0.5) == 0.5


def test_short_requests_between_long_ones_hide_little() -> None:
    """Half of the estimate is left after one; a connection that stays short is short again."""
    cost = next_cost(next_cost(0.0, 1.0), 1.0)
    assert cost == 1.0
    assert next_cost(cost, 0.0) == 0.5
    for _ in range(20):
        cost = next_cost(cost, LONG_REQUEST_S / 2)
    assert cost < LONG_REQUEST_S


class Served:
    """Long requests of a scenario, and who was served."""

    def __init__(self) -> None:
        self.now = 0.0
        self.requests = LongRequests(clock=lambda: self.now)
        self.names: list[str] = []

    def wait(self, name: str, cost: float, *, address: str = "a", took: float = 0.0) -> None:
        """Have a request wait that takes as long as it is estimated to, unless given."""
        turn = partial(self._serve, name, took or cost)
        self.requests.join(turn, ANONYMOUS, address, cost)

    def _serve(self, name: str, took: float) -> None:
        self.names.append(name)
        self.requests.spend(took)

    async def rounds(self, count: int) -> list[str]:
        """Who is served in so many rounds."""
        before = len(self.names)
        for _ in range(count):
            await asyncio.sleep(0)
        return self.names[before:]


def play(scenario: Callable[[Served], Awaitable[None]]) -> None:
    """Run a scenario on a loop of its own."""

    async def run() -> None:
        await scenario(Served())

    asyncio.run(run())


def test_a_round_serves_what_it_has_time_for() -> None:
    """One turn at least, however long, and several short ones."""

    async def scenario(served: Served) -> None:
        for number in range(4):
            served.wait(f"long{number}", ITERATION_LONG_S)
        assert await served.rounds(1) == ["long0"]
        await served.rounds(8)
        for number in range(8):
            served.wait(f"short{number}", ITERATION_LONG_S / 4)
        assert await served.rounds(1) == [f"short{number}" for number in range(4)]
        await served.rounds(8)
        assert not served.requests

    play(scenario)


def test_addresses_share_the_loop_alike() -> None:
    """However many requests one of them has."""

    async def scenario(served: Served) -> None:
        for number in range(50):
            served.wait(f"a{number}", ITERATION_LONG_S, address="a")
        served.wait("b0", ITERATION_LONG_S, address="b")
        served.wait("b1", ITERATION_LONG_S, address="b")
        first = await served.rounds(6)
        assert {"b0", "b1"} <= set(first)

    play(scenario)


def test_a_shorter_one_goes_first_for_a_while() -> None:
    """A little shorter is enough; who waits for longer than that is not overtaken any more."""

    async def scenario(served: Served) -> None:
        served.wait("commit", 0.0003)
        served.wait("fetch", 0.00025)
        assert await served.rounds(3) == ["fetch", "commit"]
        served.wait("vast", 10.0, took=ITERATION_LONG_S)
        for number in range(8):
            served.wait(f"short{number}", ITERATION_LONG_S)
            served.now += DUE_WITHIN_S / 4
            await served.rounds(1)
        assert "vast" in served.names[:7]
        await served.rounds(9)

    play(scenario)


@pytest.mark.parametrize("addresses", [CLIENTS_MAX // 4, 3 * CLIENTS_MAX])
def test_service_times_of_clients_are_bounded(addresses: int) -> None:
    """However many come, and all of it once nobody waits."""

    async def scenario(served: Served) -> None:
        for number in range(3 * CLIENTS_MAX):
            while len(served.requests) < 3:
                served.wait("x", ITERATION_LONG_S, address=str((number * 7) % addresses))
            await served.rounds(1)
            assert len(served.requests._ends) <= CLIENTS_MAX
        await served.rounds(5)
        assert not served.requests._ends
        assert not served.requests._queues

    play(scenario)


def test_one_that_raises_keeps_no_other_from_its_turn() -> None:
    """The loop reports it; the next round goes on."""

    async def scenario(served: Served) -> None:
        loop = asyncio.get_running_loop()
        raised: list[dict[str, object]] = []
        loop.set_exception_handler(lambda _, context: raised.append(context))

        def broken() -> None:
            raise ValueError("broken")

        served.requests.join(broken, ANONYMOUS, "a", ITERATION_LONG_S)
        served.wait("next", ITERATION_LONG_S)
        with contextlib.suppress(ValueError):
            assert await served.rounds(3) == ["next"]
        assert [type(each["exception"]) for each in raised] == [ValueError]
        assert not served.requests

    play(scenario)


@pytest.mark.parametrize("cost", [0.0, 1e-9, 10.0])
def test_any_estimate_is_taken(cost: float) -> None:
    """A queue counts whole microseconds, one at least."""

    async def scenario(served: Served) -> None:
        served.wait("x", cost)
        assert await served.rounds(2) == ["x"]

    play(scenario)
