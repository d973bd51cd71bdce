"""The listeners of a broker, the quotas of their connections, and what all sessions share.

In this order: `bind`, `serve`, and `watch` every second. Which connections may come in is decided
by `connection_quotas` and `ip_quotas`; what that means for newcomers and for idle clients is done
and counted here, for all listeners together.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import cast

from barnabas_broker.cluster.failures import call_isolated
from barnabas_broker.cluster.quota_entity import QuotaConfigs
from barnabas_broker.server.network.connection_quotas import ConnectionQuotas, plain_address
from barnabas_broker.server.network.ip_quotas import IpQuotas, found_limits
from barnabas_broker.server.network.listener import Listener
from barnabas_broker.server.network.network_receive import NetworkReceive
from barnabas_broker.server.network.response_coalescing import ResponseCoalescer
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.network.shared import Shared
from barnabas_broker.server.process.cooperative_scheduler import RunQueue
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_broker.server.transport.buffers import BufferPool
from barnabas_broker.server.transport.counters import Cause, Counters
from barnabas_broker.server.transport.limits import ConnectionLimits, frame_memory_bytes
from barnabas_broker.server.transport.memory_pool import MemoryPool
from barnabas_broker.server.transport.send_buffers import SendBuffers
from barnabas_broker.server.transport.write_readiness import WriteReadiness
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)


class SocketServer:
    """The connections of one broker, on its event loop."""

    def __init__(self, settings: BrokerSettings, *, monotonic_ms: Callable[[], int]) -> None:
        self.settings = settings  # Those that the limits follow.
        self.listeners: list[Listener] = []
        self.counters = Counters(log)
        self.quotas = ConnectionQuotas(ConnectionLimits.from_settings(settings))
        self.ip_quotas = IpQuotas(settings, clock_ms=monotonic_ms)
        self.shared = Shared(
            MemoryPool(BufferPool(), budget=frame_memory_bytes(settings)),
            SendBuffers(),
            self.counters,
            WriteReadiness(),
            RunQueue(),
            ResponseCoalescer(),
        )

    def bind(self, broker: Callable[[], BrokerServices]) -> None:
        """Take every address, and accept no connection yet; raises StartupError."""
        for address in self.settings.listeners:
            self.listeners.append(Listener.bind(address, self.settings, broker))

    def serve(self, dispatcher: Dispatcher) -> None:
        """Accept connections from now on."""
        for listener in self.listeners:
            listener.serve(lambda to: Session(to, dispatcher, self.shared), self)
            log.info("listening on %s", listener.address)

    async def close(self) -> None:
        """Close the listeners with their sessions, the last first, whatever one of them raises."""
        async with AsyncExitStack() as closing:
            closing.callback(self.shared.writability.close)  # After all that is owed was sent.
            for listener in self.listeners:
                closing.push_async_callback(listener.close)

    async def watch(self, settings: BrokerSettings, configs: QuotaConfigs) -> None:
        """Close idle and slow clients; follow the settings and the quotas of addresses."""
        if settings is not self.settings:
            limits = await asyncio.to_thread(ConnectionLimits.from_settings, settings)
            self._limit(limits)
            self.settings = settings
        if self.ip_quotas.differ_from(configs):
            self.ip_quotas.take(configs, await found_limits(configs))
        now = asyncio.get_running_loop().time()
        steps = [partial(self._refuse_slow, now)]
        steps += [partial(it.close_idle, now) for it in self.listeners]
        steps += [partial(it.close_departed, now) for it in self.listeners]
        steps += [partial(self.counters.log_suppressed, now), partial(self.ip_quotas.expire)]
        call_isolated(steps, "Watching", "clients")

    def _limit(self, limits: ConnectionLimits) -> None:
        """Go by other limits; listeners that wait for room look again."""
        if limits != self.quotas.limits:
            self.quotas.limits = limits
            self._make_room()

    def _refuse_slow(self, now: float) -> None:
        for receive in list(self.shared.memory.overdue(now)):
            session = cast(NetworkReceive, receive).session
            session.refuse(Cause.SLOW_SENDER, "its request does not arrive")

    # Called by the listeners.

    def wait_s(self, listener: str, now: float) -> float:
        """How long a listener must leave newcomers waiting for the sake of the rates."""
        wait_s = self.quotas.wait_s(listener, now)
        if wait_s > 0:
            self.counters.note(
                Cause.CONNECTION_RATE, now, "connections come faster than %s may accept", listener
            )
        return wait_s

    def has_room(self, listener: str, now: float) -> bool:
        """Whether a listener may accept one more; makes room for brokers by ending a client."""
        if self.quotas.has_room(listener):
            return True
        if self.quotas.may_evict(listener):
            self._evict()
            return True
        self.counters.note(
            Cause.TOO_MANY_CONNECTIONS,
            now,
            "%s accepts no connection until another one closes: there are %d",
            listener,
            self.quotas.total,
        )
        return False

    def throttle_ms(self, host: str, now: float) -> int:
        """For how long to hold up a newcomer whose address opens too many, 0 where it does not."""
        throttle_ms = self.ip_quotas.opened(host)
        if throttle_ms:
            self.counters.note(
                Cause.CONNECTION_RATE_OF_ADDRESS,
                now,
                "throttling a connection of %s for %d ms: connection_creation_rate is exceeded",
                host,
                throttle_ms,
            )
        return throttle_ms

    def accepts(self, listener: str, host: str, now: float) -> bool:
        """Whether a newcomer may stay; it is counted then, until `closed`."""
        address = plain_address(host)
        if self.quotas.refuses(address):
            self.counters.note(
                Cause.TOO_MANY_CONNECTIONS_OF_ADDRESS,
                now,
                "refusing a connection of %s: it has as many as max.connections.per.ip allows",
                address,
            )
            return False
        self.quotas.opened(listener, address, now)
        return True

    def closed(self, listener: str, host: str) -> None:
        """A counted connection has ended."""
        self.quotas.closed(listener, plain_address(host))
        self._make_room()

    def cannot_accept(self, listener: str, error: OSError, now: float) -> None:
        """The operating system had no descriptor or memory; a broker gets that of a client."""
        self.counters.note(
            Cause.NO_DESCRIPTORS,
            now,
            "%s accepts no connections for now: %s",
            listener,
            error.strerror,
        )
        if listener in self.quotas.limits.protected:
            self._evict()

    def handshake_failed(self, listener: str, host: str, error: OSError, now: float) -> None:
        """A client and the listener could not agree on TLS, or not in time."""
        self.counters.note(
            Cause.FAILED_AUTHENTICATION,
            now,
            "Failed authentication with %s on listener %s: SSL handshake failed: %s",
            host,
            listener,
            getattr(error, "reason", None) or error,
        )

    def _evict(self) -> None:
        """End the most idle client of a listener for clients, if there is one to end."""
        protected = self.quotas.limits.protected
        any(other.end_most_idle() for other in self.listeners if other.name not in protected)

    def _make_room(self) -> None:
        for listener in self.listeners:
            listener.make_room()
