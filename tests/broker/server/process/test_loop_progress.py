"""Whether the event loop turns, as other threads see it."""

import asyncio

from barnabas_broker.server.process.loop_progress import TIMEOUT_MIN_S, LoopProgress


def test_a_loop_that_does_not_turn_is_hung() -> None:
    """While it is watched, and until it turns again."""
    now = [0.0]

    async def scenario() -> list[bool]:
        seen = []
        progress = LoopProgress(TIMEOUT_MIN_S + 5, clock_s=lambda: now[0])
        now[0] += 1000
        seen.append(progress.hung())
        progress.start()
        now[0] += TIMEOUT_MIN_S + 5
        seen.append(progress.hung())
        now[0] += 1
        seen.append(progress.hung())
        progress.start()
        seen.append(progress.hung())
        now[0] += 1000
        progress.stop()
        seen.append(progress.hung())
        return seen

    assert asyncio.run(scenario()) == [False, False, True, False, False]


def test_a_short_session_is_no_reason_for_haste() -> None:
    """A machine that is merely slow keeps its session."""
    now = [0.0]

    async def scenario() -> bool:
        progress = LoopProgress(1, clock_s=lambda: now[0])
        progress.start()
        now[0] += TIMEOUT_MIN_S
        hung = progress.hung()
        progress.stop()
        return hung

    assert not asyncio.run(scenario())
