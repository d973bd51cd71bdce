"""The admin port: what its paths answer, from the start of a broker to its end.

It is open before the logs are loaded, so that probes distinguish a recovering broker from a
hung one. Until `serve` and from `withdraw` on, answers that need a running broker are 503.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from barnabas_broker.cluster.availability import Concern, Held, in_sync, leaderless, restart_of
from barnabas_broker.coordinator.runtime import Unloaded
from barnabas_broker.log.recovery_progress import RecoveryProgress
from barnabas_broker.security.admin_access import AdminAccess
from barnabas_broker.security.stores import StoreError
from barnabas_broker.server.metrics.background import Kept
from barnabas_broker.server.metrics.http import AdminServer, Verdict
from barnabas_broker.server.metrics.loop_lag import LoopLag
from barnabas_broker.server.metrics.scrape import Scrape
from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.process.broker_state import BrokerLifecycle, BrokerState
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.transport.counters import Counters
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

NAMED_MAX: Final = 100
"""An answer names this many partitions at most, and counts the rest."""

STALLED_S: Final = 600.0
"""A recovery that scans no MiB and finishes no log for so long is stuck: `/live` fails."""

FORMER_PATHS: Final = {
    "/restart": "/restart-check",
    "/caught-up": "/in-sync",
    "/led": "/leaderless-partitions",
}
"""Names of before, answered for one release."""


class Admin:
    """Serves its paths (docs/operations/metrics.md) from `start` to `stop`."""

    def __init__(
        self, settings: BrokerSettings, lifecycle: BrokerLifecycle, progress: RecoveryProgress
    ) -> None:
        """Take the address of the settings; raises StartupError when it cannot be had."""
        self._lifecycle = lifecycle
        self._progress = progress
        #: while the broker runs
        self._broker: BrokerServices | None = None
        self._scrape: Scrape | None = None
        self._background = background()
        self._lag = LoopLag()
        questions = {
            "/restart-check": self._restart_check,
            "/in-sync": self._in_sync,
            "/leaderless-partitions": self._leaderless,
        }
        address = settings[keys.BARNABAS_ADMIN_LISTENER]
        host, _, port = address.rpartition(":")
        try:
            access = AdminAccess(settings, monotonic_s=time.monotonic)
        except StoreError as error:
            raise StartupError(f"admin port: {error}") from error
        self._tls = access.context is not None
        if access.open and not _is_loopback(host.strip("[]")):
            log.warning(
                "Admin port %s answers every client that reaches it: set %s, or %s",
                address,
                keys.BARNABAS_ADMIN_TOKEN_FILE.name,
                keys.BARNABAS_ADMIN_SSL_TRUSTSTORE_LOCATION.name,
            )
        try:
            self.server = AdminServer(
                (host.strip("[]"), int(port)),
                collect=self._collect,
                unready=self._unready,
                checks=questions | {old: questions[new] for old, new in FORMER_PATHS.items()},
                stalled=self._stalled,
                recovery=self._recovery,
                access=access,
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
        scheme = "https" if self._tls else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def start(self) -> None:
        """Begin to answer."""
        self._lag.start()
        self.server.open()

    def serve(
        self,
        broker: BrokerServices,
        listeners: Sequence[Listener],
        *,
        counters: Counters,
        kept: Kept,
        clock_ms: Callable[[], int],
    ) -> None:
        """Answer for a running broker from now on."""
        self._broker = broker
        self._scrape = Scrape(
            broker,
            listeners,
            counters=counters,
            lag=self._lag,
            kept=kept,
            clock_ms=clock_ms,
        )

    def withdraw(self) -> None:
        """The broker stops: what needs its parts is answered no more."""
        self._broker = self._scrape = None

    async def stop(self) -> None:
        """Stop listening and close all connections."""
        self._lag.stop()
        await asyncio.to_thread(self.server.close)

    # In the port's thread.

    def _stalled(self) -> str | None:
        """Why a restart would help a broker that recovers; None while it makes progress."""
        idle_s = self._progress.idle_s
        if self._lifecycle.state is not BrokerState.RECOVERY or idle_s < STALLED_S:
            return None
        return f"log recovery has made no progress for {idle_s:.0f} s: {self._progress.describe()}"

    def _recovery(self) -> Mapping[str, object]:
        return {"state": self._lifecycle.state.name, **self._progress.as_json()}

    # On the broker's event loop.

    async def _collect(self) -> list[Metric]:
        state = GaugeMetricFamily(
            "kafka_server_kafkaserver_brokerstate",
            "Kafka's BrokerState: 1 starting, 2 recovery, 3 running, 6 and 7 shutting down.",
            value=self._lifecycle.state,
        )
        found = [state, *_remaining(self._progress)]
        return found if self._scrape is None else [*found, *await self._scrape.collect()]

    def _held(self, broker: BrokerServices) -> Iterator[Held]:
        for partition in broker.replicas:
            yield partition.tp, partition.state, partition.min_in_sync

    def _not_running(self) -> str:
        """Why nothing is known of partitions."""
        state = self._lifecycle.state
        detail = f": {self._progress.describe()}" if state is BrokerState.RECOVERY else ""
        return f"broker state is {state.name}{detail}"

    def _waiting_for_metadata(self) -> str | None:
        """Why it is not known yet which replicas this broker has."""
        if self._broker is None:
            return self._not_running()
        if not self._broker.controller.metadata_received.done():
            return "waiting for the first UpdateMetadata from the controller"
        return None

    def _restart_check(self) -> Verdict:
        """May this broker be restarted, and which partitions are at risk?"""
        if self._broker is None:
            return False, {"mayRestart": False, "reason": self._not_running()}
        found = restart_of(self._broker.id, self._held(self._broker))
        return found.safe, {
            "mayRestart": found.safe,
            "atRisk": _concerns(found.at_risk),
            "unavoidable": _concerns(found.unavoidable),
        }

    def _in_sync(self) -> Verdict:
        """Is every replica here in sync?"""
        reason = self._waiting_for_metadata()
        if reason is not None or self._broker is None:
            body = {"inSync": False, "caughtUp": False, "percent": 0.0, "reason": reason}
            return False, body | {"replicas": 0, "behind": []}
        broker = self._broker
        found = in_sync(broker.id, self._held(broker), broker.image)
        return not found.behind, {
            "inSync": not found.behind,
            "caughtUp": not found.behind,
            "percent": found.percent,
            "replicas": found.replicas,
            "behind": [f"{tp.topic}-{tp.partition}" for tp in found.behind[:NAMED_MAX]],
        }

    def _leaderless(self) -> Verdict:
        """Has every partition of the cluster a leader?"""
        if self._broker is None:
            body = {"led": False, "leaderless": _concerns(()), "reason": self._not_running()}
            return False, body
        found = list(leaderless(self._broker.image))
        return not found, {"led": not found, "leaderless": _concerns(found)}

    def _unready(self) -> str | None:
        """Why clients should not come here; None if they may."""
        if self._broker is None:
            return self._not_running()
        if not self._broker.image.brokers.get(self._broker.id):
            return "this broker is not registered"
        if (reason := self._waiting_for_metadata()) is not None:
            return reason
        unloaded = [*self._broker.groups.unloaded, *self._broker.transactions.unloaded]
        reasons = [_loading(unloaded)] if unloaded else []
        reasons += [f"{name} is down: {why}" for name, why in self._background.down.items()]
        return "\n".join(reasons[:NAMED_MAX]) or None


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name may be anything."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _remaining(progress: RecoveryProgress) -> Iterator[Metric]:
    """Kafka's LogManager gauges of KIP-831."""
    label = ["logdirectory"]
    logs = GaugeMetricFamily(
        "kafka_log_logmanager_remaininglogstorecover", "Logs not loaded yet.", labels=label
    )
    segments = GaugeMetricFamily(
        "kafka_log_logmanager_remainingsegmentstorecover", "Not scanned yet.", labels=label
    )
    for each in progress.directories:
        logs.add_metric([str(each.path)], each.logs - each.logs_done)
        segments.add_metric([str(each.path)], each.segments - each.segments_done)
    yield from (logs, segments)


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


def _concerns(concerns: Sequence[Concern]) -> dict[str, object]:
    named = [
        {"topic": each.tp.topic, "partition": each.tp.partition, "reason": each.reason}
        for each in concerns[:NAMED_MAX]
    ]
    return {"count": len(concerns), "partitions": named}
