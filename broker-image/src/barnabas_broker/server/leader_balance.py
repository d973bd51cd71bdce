"""Hands leadership back to preferred replicas by itself, from time to time.

Kafka's `KafkaController.scheduleAutoLeaderRebalanceTask`. After a broker was restarted it leads
nothing; without this, or somebody who asks for it, the others would do its work for good.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from barnabas_broker.controller.shell import Controller
from barnabas_broker.server.controller_thread import ControllerThread
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.settings import broker as keys

log = logging.getLogger(__name__)


class LeaderBalance:
    """Looks at how leadership is spread, if this broker is the controller. `start`, then `stop`."""

    def __init__(self, controller: ControllerThread, now_ms: Callable[[], int]) -> None:
        self._controller = controller
        self._now_ms = now_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look, every leader.imbalance.check.interval.seconds."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="leader balance")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def look(self) -> int:
        """Balance now, if that is wanted; how many partitions are led by others than before."""
        settings = self._controller.settings
        if not settings[keys.AUTO_LEADER_REBALANCE_ENABLE]:
            return 0
        share = settings[keys.LEADER_IMBALANCE_PER_BROKER_PERCENTAGE]

        def balance(controller: Controller) -> int:
            if not controller.reigns:
                return 0
            return controller.moves.balance(share, now_ms=self._now_ms())

        return await self._controller.run(balance)

    async def _run(self) -> None:
        while True:
            seconds = self._controller.settings[keys.LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS]
            await asyncio.sleep(seconds)
            try:
                await self.look()
            except KafkaError as error:  # The next look is not far.
                log.warning("leadership is not balanced: %s", error)
            except Exception:  # One failed look must not end the task for the life of the broker.
                log.exception("balancing leadership failed; it is retried with the next look")
