"""Hands leadership back to preferred replicas by itself, from time to time.

Kafka's `KafkaController.scheduleAutoLeaderRebalanceTask`. After a broker was restarted it leads
nothing; without this, or an operator's election request, the others would lead for good.
"""

import asyncio
import contextlib
from collections.abc import Callable

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.events import AutoPreferredReplicaLeaderElection
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.settings import broker as keys


class LeaderBalance:
    """Checks how leadership is spread while this broker is the controller. `start`, then `stop`."""

    def __init__(self, controller: ControllerThread, now_ms: Callable[[], int]) -> None:
        self._controller = controller
        self._now_ms = now_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look, every leader.imbalance.check.interval.seconds."""
        self._task = background().every("leader balance", self._pause_s, self.look)

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def look(self) -> int:
        """Balance now, if that is wanted; how many partitions are led by others than before.

        Raises KafkaError, CoordinationError.
        """
        settings = self._controller.settings
        if not settings[keys.AUTO_LEADER_REBALANCE_ENABLE]:
            return 0
        share = settings[keys.LEADER_IMBALANCE_PER_BROKER_PERCENTAGE]

        def balance(controller: Controller) -> int:
            if not controller.is_active:
                return 0
            event = AutoPreferredReplicaLeaderElection(share)
            return int(controller.active.process(event, now_ms=self._now_ms()))

        return await self._controller.run(balance)

    def _pause_s(self) -> float:
        return float(self._controller.settings[keys.LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS])
