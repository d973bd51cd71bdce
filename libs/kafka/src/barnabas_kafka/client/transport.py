"""One connection over asyncio: TCP, TLS, and the state machine of `connection` on top.

The host name is resolved for every connection, because a pod that comes back has another address.
"""

import asyncio
import secrets
import ssl
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, Final, cast

from barnabas_kafka.client.cluster import Address
from barnabas_kafka.client.config import ClientConfig
from barnabas_kafka.client.connection import Connection, State
from barnabas_kafka.client.errors import (
    AuthenticationError,
    ClientClosedError,
    ClientError,
    DisconnectError,
)
from barnabas_kafka.client.sasl import Exchange, OAuthBearer
from barnabas_kafka.host_resolver import HostResolver, connect_to_any
from barnabas_kafka.protocol.schema import Request, Response

SESSION_SHARE: Final = 0.8
"""Of the lifetime of a SASL session; then a new connection replaces it, as Kafka's clients
authenticate again at 85 to 95 % of it (KIP-368)."""

_RESOLVER: Final = HostResolver()


class BrokerConnection(asyncio.Protocol):
    """The asyncio end of a connection. Used by one event loop."""

    def __init__(self, core: Connection, name: str, idle_s: float) -> None:
        self._core = core
        self._name = name
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._error: ClientError | None = None
        self._retired = False
        self._answered = False
        self._idle: asyncio.TimerHandle | None = None
        self._expires_at: float | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()

    @property
    def usable(self) -> bool:
        """Whether a request may be sent on it."""
        expired = self._expires_at is not None and self._loop.time() >= self._expires_at
        return self._error is None and not self._retired and not expired

    def version(self, api_key: int, newest: int | None = None) -> int:
        """See Connection.version."""
        return self._core.version(api_key, newest)

    async def authenticated(self) -> None:
        """Wait until requests may be sent; raises the ClientError that ended the connection."""
        await self._ready

    def ask(self, request: Request, version: int) -> "asyncio.Future[Response]":
        """Send a request; the future gets its response, or the error that ends the connection."""
        if self._error is not None:
            raise self._error
        correlation_id = self._core.request(request, version)
        answered: asyncio.Future[Response] = self._loop.create_future()
        self._waiting[correlation_id] = answered
        self._flush()
        self._await_idle()
        return answered

    def retire(self) -> None:
        """Send nothing more on it, and close it after the last response."""
        self._retired = True
        self._close_if_unused()

    def abort(self, error: ClientError) -> None:
        """Close it now; pending requests get `error`."""
        if self._error is not None:
            return
        self._error = error
        if self._idle is not None:
            self._idle.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, {}
        _fail(self._ready, error)
        for answered in waiting.values():
            _fail(answered, error)

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP, and TLS where it is used, are ready."""
        self._transport = cast(asyncio.Transport, transport)
        if self._error is not None:
            self._transport.abort()
            return
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        try:
            received = self._core.receive(data)
            self._flush()
        except ClientError as error:
            self.abort(error)
            return
        if self._core.state is State.READY and not self._ready.done():
            lifetime_s = self._core.session_lifetime_ms / 1000
            if lifetime_s > 0:
                self._expires_at = self._loop.time() + lifetime_s * SESSION_SHARE
            self._ready.set_result(None)
        self._answered |= bool(received)
        for each in received:
            answered = self._waiting.pop(each.correlation_id, None)
            if answered is not None and not answered.done():
                answered.set_result(each.response)
        if self._retired:
            self._close_if_unused()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended, by either side."""
        if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
            self.abort(AuthenticationError(f"TLS with {self._name} failed: {error}"))
            return
        reason = f": {error}" if error else ""
        text = f"the connection to {self._name} was closed{reason}"
        self.abort(DisconnectError(text + self._likely_cause()))

    def _likely_cause(self) -> str:
        """Why a connection ends that has had no response: listeners close those of another kind."""
        if self._answered:
            return ""
        if self._core.state is State.READY:
            return "" if self._core.mechanism else "; the listener may require SASL"
        if self._core.state is not State.VERSIONS or self._transport is None:
            return ""
        if self._transport.get_extra_info("ssl_object") is None:
            return "; the listener may require TLS"
        return "; the listener may require a client certificate"

    def _flush(self) -> None:
        output = self._core.take_output()
        if output and self._transport is not None:
            self._transport.write(output)

    def _await_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.call_later(self._idle_s, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self._close_if_unused()
        if self._error is None:  # A response is still waited for.
            self._await_idle()

    def _close_if_unused(self) -> None:
        if all(answered.done() for answered in self._waiting.values()):
            self.abort(DisconnectError(f"the connection to {self._name} was not in use"))


def _fail(future: "asyncio.Future[Any]", error: ClientError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # Retrieved: a cancelled caller never does.


async def connect(address: Address, config: ClientConfig) -> BrokerConnection:
    """A connection that is ready for requests; raises ClientError within the time to connect."""
    step = "resolving"
    connection: BrokerConnection | None = None
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(config.connect_timeout_s):
            core = Connection(
                client_id=config.client_id,
                mechanism=config.sasl.mechanism if config.sasl else "",
                exchange=await _exchange(config),
                response_bytes_max=config.response_bytes_max,
            )
            made = connection = BrokerConnection(core, str(address), config.idle_s)
            addresses = await _RESOLVER.resolve(address.host)
            step = f"connecting to {' or '.join(addresses)}"
            await loop.create_connection(
                lambda: made,
                sock=await connect_to_any(addresses, address.port),
                ssl=config.tls,
                server_hostname=address.host if config.tls else None,
            )
            step = "asking for versions and authenticating"
            await connection.authenticated()
            return connection
    except TimeoutError:
        error: ClientError = DisconnectError(
            f"cannot connect to {address}: {step} took longer than {config.connect_timeout_s:g} s"
        )
    except ssl.SSLError as raised:
        error = AuthenticationError(f"TLS with {address} failed: {raised}")
    except ConnectionResetError as raised:
        # Also how asyncio says that the peer has left before TLS was agreed upon, without a text.
        hint = " during the TLS handshake; the listener may not speak TLS" if config.tls else ""
        error = DisconnectError(f"{address} closed the connection{hint or f': {raised}'}")
    except (OSError, UnicodeError) as raised:  # The latter for a host that cannot be a name.
        error = DisconnectError(f"cannot connect to {address}: {raised}")
    except ClientError as raised:
        error = raised
    except asyncio.CancelledError:
        if connection is not None:
            connection.abort(ClientClosedError(f"connecting to {address} was cancelled"))
        raise
    if connection is not None:
        connection.abort(error)
    raise error


async def _exchange(config: ClientConfig) -> Exchange | None:
    mechanism = config.sasl
    if mechanism is None:
        return None
    if not isinstance(mechanism, OAuthBearer):
        return mechanism.start(secrets.token_urlsafe(24))
    try:
        provider: Callable[[], Any] = mechanism.token_provider
        if asyncio.iscoroutinefunction(provider):
            token = provider()
        else:
            token = await asyncio.to_thread(provider)
        return mechanism.start_with(await token if isawaitable(token) else token)
    except (ClientError, TimeoutError):
        raise
    except Exception as error:
        raise AuthenticationError(f"the OAUTHBEARER token provider failed: {error}") from error
