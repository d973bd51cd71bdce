"""The admin port of a running broker: what it asks of whom, and its life."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from barnabas_broker.cluster.standing import Concern, Held, caught_up, leaderless, restart_of
from barnabas_broker.coordinator.runtime import Unloaded
from barnabas_broker.server.background import background
from barnabas_broker.server.broker import Broker
from barnabas_broker.server.counters import Counters
from barnabas_broker.server.listener import Listener
from barnabas_broker.server.metrics.http import AdminServer, Standing
from barnabas_broker.server.metrics.loop_lag import LoopLag
from barnabas_broker.server.metrics.scrape import Scrape
from barnabas_broker.server.metrics.upkeep import Kept
from barnabas_broker.server.startup import StartupError

NAMED_MAX: Final = 100
"""So many partitions are named in an answer; how many there are is told besides."""


class Admin:
    """Serves its paths (docs/metrics.md) from `start` to `stop`."""

    def __init__(
        self,
        address: str,
        broker: Broker,
        listeners: Sequence[Listener],
        *,
        counters: Counters,
        kept: Kept,
        clock_ms: Callable[[], int],
    ) -> None:
        """Take the address, which is host:port; raises StartupError when it cannot be had."""
        self._broker = broker
        self._background = background()
        self._lag = LoopLag()
        scrape = Scrape(
            broker,
            listeners,
            counters=counters,
            lag=self._lag,
            kept=kept,
            clock_ms=clock_ms,
        )
        host, _, port = address.rpartition(":")
        try:
            self.server = AdminServer(
                (host.strip("[]"), int(port)),
                collect=scrape.collect,
                unready=self._unready,
                standing={
                    "/restart": self._restart,
                    "/caught-up": self._caught_up,
                    "/led": self._led,
                },
            )
        except OSError as error:
            reason = error.strerror or error
            raise StartupError(
                f"barnabas.admin.listener: cannot use {address}: {reason}"
            ) from error

    @property
    def url(self) -> str:
        """Where it is reached, with the port that was taken for 0."""
        host, port = self.server.server_name, self.server.server_port
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begin to answer."""
        self._lag.start()
        self.server.open()

    async def stop(self) -> None:
        """Answer nobody any more."""
        self._lag.stop()
        await asyncio.to_thread(self.server.close)

    def _held(self) -> Iterator[Held]:
        for partition in self._broker.replicas:
            yield partition.tp, partition.state, partition.min_in_sync

    def _restart(self) -> Standing:
        """May this broker be restarted, and which partitions are at risk?"""
        found = restart_of(self._broker.id, self._held())
        return found.safe, {
            "mayRestart": found.safe,
            "atRisk": _told(found.at_risk),
            "unavoidable": _told(found.unavoidable),
        }

    def _caught_up(self) -> Standing:
        """Is every replica here in sync?"""
        found = caught_up(self._broker.id, self._held())
        return not found.behind, {
            "caughtUp": not found.behind,
            "percent": found.percent,
            "replicas": found.replicas,
            "behind": [f"{tp.topic}-{tp.partition}" for tp in found.behind[:NAMED_MAX]],
        }

    def _led(self) -> Standing:
        """Has every partition of the cluster a leader?"""
        found = list(leaderless(self._broker.image))
        return not found, {"led": not found, "leaderless": _told(found)}

    def _unready(self) -> str | None:
        """Why clients should not come here; None if they may."""
        if not self._broker.image.brokers.get(self._broker.id):
            return "this broker is not registered"
        if not self._broker.controller.metadata_received.done():
            return "waiting for the first UpdateMetadata from the controller"
        unloaded = [*self._broker.groups.unloaded, *self._broker.transactions.unloaded]
        reasons = [_loading(unloaded)] if unloaded else []
        # A copy: this thread is not the tasks'.
        reasons += [f"{name} is down: {why}" for name, why in dict(self._background.down).items()]
        return "\n".join(reasons[:NAMED_MAX]) or None


def _loading(unloaded: Sequence[Unloaded]) -> str:
    """Name partitions that are being loaded, those first that cannot be."""
    unloaded = sorted(unloaded, key=lambda each: not each.reason)
    lines = [
        f"loading {tp}: the last attempt failed, it is retried: {reason}"
        if reason
        else f"loading {tp}"
        for tp, reason in unloaded[:NAMED_MAX]
    ]
    if len(unloaded) > NAMED_MAX:
        lines.append(f"and {len(unloaded) - NAMED_MAX} more")
    return "\n".join(lines)


def _told(concerns: Sequence[Concern]) -> dict[str, object]:
    named = [
        {"topic": each.tp.topic, "partition": each.tp.partition, "reason": each.reason}
        for each in concerns[:NAMED_MAX]
    ]
    return {"count": len(concerns), "partitions": named}
