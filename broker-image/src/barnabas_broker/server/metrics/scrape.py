"""Collects all metrics on the broker's event loop without blocking it."""

import asyncio
from collections.abc import Callable, Sequence

from prometheus_client.metrics_core import Metric

from barnabas_broker.server.metrics import families, quotas, waiting
from barnabas_broker.server.metrics.background import Kept, of_background
from barnabas_broker.server.metrics.loop_lag import LoopLag
from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.transport.counters import Counters


class Scrape:
    """Where the numbers are. `collect` on the event loop, at any time while the broker serves."""

    def __init__(
        self,
        broker: BrokerServices,
        listeners: Sequence[Listener],
        *,
        counters: Counters,
        lag: LoopLag,
        kept: Kept,
        clock_ms: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._listeners = listeners
        self._counters = counters
        self._lag = lag
        self._kept = kept
        self._clock_ms = clock_ms

    async def collect(self) -> list[Metric]:
        """All families; other work of the loop comes between the slices."""
        found = list(families.gauges(self._broker))
        open_now = {listener.name: len(listener.sessions) for listener in self._listeners}
        found += families.connections(open_now, self._counters)
        found += families.loop_lag(self._lag, self._clock_ms())
        found += waiting.purgatories(self._broker)
        await asyncio.sleep(0)
        found += of_background(self._kept, self._broker.logs, self._clock_ms())
        found += families.requests(self._broker.requests, self._clock_ms())
        await asyncio.sleep(0)
        found += quotas.quotas(self._broker.quotas)
        found += families.traffic(self._broker.replicas.traffic)
        logs = families.LogFamilies()
        for some in families.sliced(self._broker.logs.logs.values()):
            await asyncio.sleep(0)
            for log in some:
                logs.add(log)
        return [*found, *logs.families]
