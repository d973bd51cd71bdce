"""The connections of a client: at most one for each address, made when it is needed.

Bounds: `IN_FLIGHT_MAX` requests on a connection, others wait for their turn; one attempt to connect
at a time, shared by those that wait for it, and after a failure none until the back-off is over. A
response that is late makes the pool test the broker with a new connection: if that fails, the
broker's node is gone or hangs, and the requests fail now instead of at their time-out.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas_kafka.client.cluster import Address
from barnabas_kafka.client.config import ClientConfig
from barnabas_kafka.client.errors import ClientClosedError, ClientError, DisconnectError
from barnabas_kafka.client.progress import backoff_s
from barnabas_kafka.client.transport import BrokerConnection, connect
from barnabas_kafka.protocol.schema import Request

logger = logging.getLogger(__name__)

IN_FLIGHT_MAX: Final = 5
"""Kafka's max.in.flight.requests.per.connection."""

Build = Callable[[BrokerConnection], tuple[Request, int]]
"""A request and its version, once the broker's versions are known."""


@dataclass(slots=True)
class _Link:
    """What there is to one address."""

    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_FLIGHT_MAX))
    connection: BrokerConnection | None = None
    connecting: "asyncio.Task[BrokerConnection] | None" = None
    failures: int = 0
    failed: ClientError | None = None
    not_before: float = 0.0


class Pool:
    """Connections by address. Used by one event loop."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._links: dict[Address, _Link] = {}
        self._closed = False

    def rank(self, address: Address) -> int:
        """How likely it answers soon: 0 connected, 1 not tried yet, 2 failed lately."""
        link = self._links.get(address)
        if link is None:
            return 1
        if link.connection is not None and link.connection.usable:
            return 0
        return 2 if link.failures else 1

    async def ask(self, address: Address, build: Build) -> Any:
        """The response to a request; raises ClientError within the time for one attempt."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        link = self._links.setdefault(address, _Link())
        sent: BrokerConnection | None = None
        try:
            async with asyncio.timeout(self._config.request_timeout_s), link.slots:
                connection = await self._connection(link, address)
                request, version = build(connection)
                answered = connection.ask(request, version)
                sent = connection
                return await self._response(address, connection, answered)
        except TimeoutError:
            error = DisconnectError(
                f"{address} did not answer in {self._config.request_timeout_s:g} s"
            )
            if sent is not None:  # The responses behind it would be as late.
                sent.abort(error)
            raise error from None

    def keep_only(self, addresses: Collection[Address]) -> None:
        """Close the connections to all other addresses: nothing listens there any more."""
        for address in self._links.keys() - set(addresses):
            self._end(address, DisconnectError(f"{address} does not belong to the cluster"))

    def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._closed = True
        for address in list(self._links):
            self._end(address, ClientClosedError("the client was closed"))

    def _end(self, address: Address, error: ClientError) -> None:
        link = self._links.pop(address)
        if link.connecting is not None:
            link.connecting.cancel()
        if link.connection is not None:
            link.connection.abort(error)

    async def _connection(self, link: _Link, address: Address) -> BrokerConnection:
        if link.connection is not None:
            if link.connection.usable:
                return link.connection
            link.connection.retire()
            link.connection = None
        if link.connecting is None:
            if link.failed is not None and asyncio.get_running_loop().time() < link.not_before:
                raise link.failed
            attempt = asyncio.create_task(connect(address, self._config), name=f"to {address}")
            link.connecting = attempt
            attempt.add_done_callback(lambda done: self._connected(link, address, done))
        attempt = link.connecting
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            # Where only the attempt was cancelled, the caller goes on.
            if attempt.cancelled():
                raise DisconnectError(f"connecting to {address} was given up") from None
            raise

    def _connected(
        self, link: _Link, address: Address, attempt: "asyncio.Task[BrokerConnection]"
    ) -> None:
        link.connecting = None
        if attempt.cancelled():
            return
        error = attempt.exception()
        if error is None:
            link.connection, link.failures, link.failed = attempt.result(), 0, None
            if self._links.get(address) is not link:
                link.connection.abort(ClientClosedError("the connection is not needed any more"))
        elif isinstance(error, ClientError):
            link.failures += 1
            link.failed = error
            pause_s = backoff_s(link.failures, 0.5)
            link.not_before = asyncio.get_running_loop().time() + pause_s
            logger.debug("Connection to %s failed: %s", address, error)
        else:
            logger.error("Connecting to %s failed unexpectedly", address, exc_info=error)

    async def _response(
        self, address: Address, connection: BrokerConnection, answered: "asyncio.Future[Any]"
    ) -> Any:
        probed = False
        try:
            while True:
                await asyncio.wait({answered}, timeout=self._config.probe_after_s)
                if answered.done():
                    return answered.result()
                probed = True
                await self._probe(address, connection, answered)
        except asyncio.CancelledError:
            answered.cancel()
            if probed:  # It was slow for this request: the next one gets a new connection.
                connection.retire()
            raise

    async def _probe(
        self, address: Address, connection: BrokerConnection, answered: "asyncio.Future[Any]"
    ) -> None:
        """Abort the connection where no new one can be made to the same address."""
        probe = asyncio.create_task(connect(address, self._config), name=f"probe of {address}")
        try:
            await asyncio.wait({probe, answered}, return_when=asyncio.FIRST_COMPLETED)
            if not probe.done():
                return
            error = probe.exception()
            if error is None:
                return
            logger.info("Connection to %s is dead: a new one failed with %s", address, error)
            connection.abort(DisconnectError(f"{address} does not answer any more: {error}"))
        finally:
            probe.add_done_callback(_discard)
            probe.cancel()


def _discard(probe: "asyncio.Task[BrokerConnection]") -> None:
    """Close what a probe has opened, and take note of its error."""
    if not probe.cancelled() and probe.exception() is None:
        probe.result().abort(ClientClosedError("it was a probe"))
