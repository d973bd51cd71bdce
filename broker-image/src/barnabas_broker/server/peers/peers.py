"""Requests to the other brokers of the cluster, over a listener that is for brokers.

One `Peers` is one purpose (control, markers, one replica fetcher): it holds at most one connection
to each broker, so that what one purpose asks never waits behind another. A connection is made when
it is first needed; which versions the peer speaks is asked on it before anything else, since peers
may be of any release, Apache Kafka's included. Requests go out in the order of the calls and are
answered in that order.

How a connection is protected and authenticated is the own listener's of the same name. A session
with a lifetime authenticates again before it is over (KIP-368); requests wait meanwhile, and keep
their order.

Everything is bounded: a request by its timeout, the requests under way by `IN_FLIGHT_MAX`, an
answer by `answer_bytes_max`, and attempts to connect by a backoff that doubles. A request that
timed out ends its connection, for the answers behind it would be as late (Kafka's NetworkClient).
Lives on the event loop.
"""

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from barnabas_broker.cluster.image import Endpoint
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.host_resolver import HostResolver, connect_to_any
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.frames import (
    FRAME_SIZE_MAX,
    LENGTH_SIZE,
    FrameError,
    frame,
    frame_size,
)
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response

log = logging.getLogger(__name__)

IN_FLIGHT_MAX: Final = 256
"""Unanswered requests on one connection; further ones are refused with an error."""

BACKOFF_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
"""Between attempts to connect: doubled from the one to the other, a fifth of it by chance, as
Kafka's clients do by default (reconnect.backoff.ms, reconnect.backoff.max.ms)."""

CONNECT_TIMEOUT_S: Final = 10.0
"""Kafka's default of socket.connection.setup.timeout.ms, for one attempt of all its callers."""

ALLOCATED_AT_ONCE: Final = 16 << 20
"""Bytes allocated for an answer by its announced size alone; a larger one has more memory as it
arrives. Above `replica.fetch.response.max.bytes`, so that usual answers are never copied."""

AUTHENTICATION_BYTES_MAX: Final = 1 << 20
"""The largest answer of a peer that is not authenticated yet, of the versions it speaks mostly."""

NONCE_BYTES: Final = 24

REAUTHENTICATION: Final = (0.85, 0.95)
"""Between which shares of its lifetime a session authenticates again, as Kafka's clients do."""

NOT_LIMITED: Final[Mapping[ApiKey, int]] = {}

Answer = TypeVar("Answer", bound=Response)
EndpointOf = Callable[[int], Endpoint | None]
SecurityOf = Callable[[str], "ClientSecurity | None"]
"""How to connect to a listener of other brokers, by its name; None is PLAINTEXT."""

if TYPE_CHECKING:
    from barnabas_broker.security.client_security import ClientSecurity
    from barnabas_kafka.client.sasl import Exchange, Mechanism


class PeerError(Exception):
    """No answer to a request; it may have been carried out all the same."""


class UnreachableError(PeerError):
    """The peer is not known, cannot be connected to, hung up or did not answer in time."""


class PeerAuthenticationError(UnreachableError):
    """The peer and this broker do not accept each other."""


class UnsupportedError(PeerError):
    """The peer knows no version of the request that we know."""


class Peers:
    """Connections to other brokers for one purpose. `close` when done with it."""

    def __init__(
        self,
        endpoint_of: EndpointOf,
        *,
        client_id: str,
        answer_bytes_max: int = FRAME_SIZE_MAX,
        newest: Mapping[ApiKey, int] = NOT_LIMITED,
        resolver: HostResolver | None = None,
        security: SecurityOf = lambda _: None,
    ) -> None:
        """`endpoint_of` gives the address of a broker as it is now, None where it is not alive.

        `newest` limits the versions of some requests, whatever both sides know. Instances that
        share a `resolver` share its lookups.
        """
        self._resolver = resolver or HostResolver()
        self._newest = newest
        self._security = security
        self._endpoint_of = endpoint_of
        self._client_id = client_id
        self._answer_bytes_max = answer_bytes_max
        self._links: dict[int, _Link] = {}

    async def send(
        self,
        broker: int,
        request: Request,
        kind: type[Answer],
        *,
        timeout_s: float,
        version_max: int | None = None,
    ) -> Answer:
        """The answer of a broker, in the newest version both sides know, or up to `version_max`.

        Raises UnreachableError or UnsupportedError; EncodeError where the request holds what the
        version cannot express (see `version`). Cancelling gives up the response only.
        """
        link = self._link(broker)
        name = ApiKey(request.api_key).name
        asked: _Connection | None = None
        try:
            async with asyncio.timeout(timeout_s):
                connection = await link.connection()
                api_key = ApiKey(request.api_key)
                version = connection.version(api_key, self._limit(api_key, version_max))
                asked = connection
                return await connection.ask(request, kind, version)
        except TimeoutError:
            fault = UnreachableError(f"broker {broker} did not answer {name} in {timeout_s:g} s")
            if asked is not None:
                asked.end(fault)
            raise fault from None

    async def version(
        self, broker: int, api_key: ApiKey, *, timeout_s: float, version_max: int | None = None
    ) -> int:
        """The version `send` will use; raises as it does."""
        link = self._link(broker)
        try:
            async with asyncio.timeout(timeout_s):
                connection = await link.connection()
                return connection.version(api_key, self._limit(api_key, version_max))
        except TimeoutError:
            raise UnreachableError(
                f"cannot connect to broker {broker} in {timeout_s:g} s"
            ) from None

    def forget(self, broker: int) -> None:
        """End the connection to a broker, if there is one; requests on it fail."""
        link = self._links.pop(broker, None)
        if link is not None:
            link.hang_up()

    def disconnect_unregistered(self) -> None:
        """Disconnect from brokers that are no longer registered, or whose address has changed.

        Call it after every change of the image: a request to the old controller fails at once and
        can be sent to the new one, instead of waiting for the connection attempt to time out.
        """
        for broker, link in list(self._links.items()):
            if self._endpoint_of(broker) != link.endpoint:
                self.forget(broker)

    def close(self) -> None:
        """End all connections."""
        for broker in list(self._links):
            self.forget(broker)

    def _limit(self, api_key: ApiKey, version_max: int | None) -> int | None:
        limit = self._newest.get(api_key, version_max)
        return limit if limit is None or version_max is None else min(limit, version_max)

    def _link(self, broker: int) -> "_Link":
        endpoint = self._endpoint_of(broker)
        if endpoint is None:
            self.forget(broker)
            raise UnreachableError(
                f"broker {broker} is not alive, or not on the listener of brokers"
            )
        link = self._links.get(broker)
        if link is None or link.endpoint != endpoint:
            self.forget(broker)
            link = self._links[broker] = _Link(
                broker,
                endpoint,
                self._resolver,
                client_id=self._client_id,
                answer_bytes_max=self._answer_bytes_max,
                security=self._security,
            )
        return link


class _Link:
    """The way to one address: a connection, the attempt to make one, or the pause before it."""

    def __init__(
        self,
        broker: int,
        endpoint: Endpoint,
        resolver: HostResolver,
        *,
        client_id: str,
        answer_bytes_max: int,
        security: SecurityOf,
    ) -> None:
        self._resolver = resolver
        self._security = security
        self.endpoint = endpoint
        self._name = f"broker {broker} at {endpoint.host}:{endpoint.port}"
        self._client_id = client_id
        self._answer_bytes_max = answer_bytes_max
        self._connection: _Connection | None = None
        self._connecting: asyncio.Task[_Connection] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._hung_up = False

    async def connection(self) -> "_Connection":
        """The connection, opened if needed; all waiting requests share one attempt."""
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(), name=f"connect to {self._name}")
            self._connecting.add_done_callback(self._connected)
        attempt = self._connecting
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            # Only the attempt was cancelled, not its callers: for them it is no cancellation.
            if attempt.cancelled():
                raise UnreachableError(f"{self._name} is not asked any more") from None
            raise

    def hang_up(self) -> None:
        """Close the connection for good; pending requests get an error."""
        self._hung_up = True
        if self._connecting is not None:
            self._connecting.cancel()
        self._end()

    def _connected(self, attempt: "asyncio.Task[_Connection]") -> None:
        self._connecting = None
        if attempt.cancelled() or attempt.exception() is not None:
            pause = min(BACKOFF_S * 2**self._failures, BACKOFF_MAX_S)
            self._failures = min(self._failures + 1, 16)
            spread = random.uniform(0.8, 1.2)  # noqa: S311 - so that brokers do not come all at once
            self._not_before = asyncio.get_running_loop().time() + pause * spread
        else:
            self._failures = 0
            self._connection = attempt.result()
            if self._hung_up:  # When it had just been made, and nothing was left to be cancelled.
                self._end()

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.end(UnreachableError(f"the connection to {self._name} was ended"))

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._not_before - loop.time())
        endpoint = self.endpoint
        security = self._security_now()
        connection = _Connection(self._name, self._client_id, self._answer_bytes_max)
        options: dict[str, Any] = {}
        if security is not None and security.tls is not None:
            name = endpoint.server_name or endpoint.host
            options = {"ssl": security.tls, "server_hostname": name}
        step = f"resolving {endpoint.host}"
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                addresses = await self._resolver.resolve(endpoint.host)
                step = f"connecting to {' or '.join(addresses)}"
                plain = await connect_to_any(addresses, endpoint.port)
                await loop.create_connection(lambda: connection, sock=plain, **options)
                step = "asking which versions it speaks"
                await connection.learn_versions()
                if security is not None and security.mechanism is not None:
                    step = f"authenticating with {security.mechanism.mechanism}"
                    await connection.authenticate(self._security_now)
                connection.ready = True
        except TimeoutError:  # An OSError that says nothing.
            reason = f"{step} took longer than {CONNECT_TIMEOUT_S:g} s"
            raise UnreachableError(f"cannot connect to {self._name}: {reason}") from None
        except ssl.SSLError as error:
            raise PeerAuthenticationError(
                f"the connection to {self._name} failed authentication due to: SSL handshake "
                f"failed: {error}"
            ) from None
        except (OSError, UnicodeError) as error:  # The latter for a host that is no name at all.
            raise UnreachableError(f"cannot connect to {self._name}: {error}") from None
        finally:
            if not connection.ready:
                connection.end(UnreachableError(f"{self._name} was not connected to"))
        return connection

    def _security_now(self) -> "ClientSecurity | None":
        """How to connect now; raises UnreachableError where the peer does it in another way."""
        endpoint = self.endpoint
        security = self._security(endpoint.listener)
        protocol = "PLAINTEXT" if security is None else security.protocol.name
        if endpoint.security_protocol != protocol:
            raise UnreachableError(
                f"cannot connect to {self._name}: its listener {endpoint.listener} is "
                f"{endpoint.security_protocol}, the one of this broker is {protocol}"
            )
        return security


async def _exchange(mechanism: "Mechanism") -> "Exchange":
    """One exchange of a mechanism. Raises UnreachableError where there is no token for it."""
    import secrets

    from barnabas_broker.security.bearer_login import BearerLoginError
    from barnabas_kafka.client.sasl import OAuthBearer

    if not isinstance(mechanism, OAuthBearer):
        return mechanism.start(secrets.token_urlsafe(NONCE_BYTES))
    try:
        token = mechanism.token_provider()
        return mechanism.start_with(token if isinstance(token, str) else await token)
    except BearerLoginError as error:
        raise UnreachableError(f"no bearer token for other brokers: {error}") from None


class _Connection(asyncio.BufferedProtocol):
    """One connection; an answer is received straight into the buffer that is decoded.

    Records of an answer are views into that buffer, which has no other user.
    """

    def __init__(self, name: str, client_id: str, answer_bytes_max: int) -> None:
        self.alive = False
        self._name = name
        self._client_id = client_id
        self._limit = answer_bytes_max
        #: whether it is connected and authenticated, so that answers of any size are taken
        self.ready = False
        self._sending = asyncio.Lock()  # Fair: requests keep their order.
        self._waiting = 0  # Requests that are not sent before an authentication is over.
        self._security: Callable[[], ClientSecurity | None] = lambda: None
        self._expiry: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._fault: UnreachableError | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._pending: dict[int, asyncio.Future[bytearray]] = {}
        self._length = bytearray(LENGTH_SIZE)
        self._body: bytearray | None = None  # None while the length is received.
        self._size = 0  # Of the answer that is received.
        self._received = 0

    async def learn_versions(self) -> None:
        """Ask what the peer speaks: in version 0, which every broker there ever was answers."""
        response = await self._answer(ApiVersionsRequest(), ApiVersionsResponse, 0)
        if response.error_code != ErrorCode.NONE:
            raise UnreachableError(
                f"{self._name} does not list its API versions: error {response.error_code}"
            )
        self._versions = {
            api.api_key: (api.min_version, api.max_version) for api in response.api_keys
        }

    async def authenticate(self, security: "Callable[[], ClientSecurity | None]") -> None:
        """Authenticate with SASL now, and before each end of the session.

        Raises UnreachableError, of which PeerAuthenticationError where either side refuses.
        """
        # Late, for a broker without SASL does without them.
        from barnabas_kafka.client.authentication import Authentication
        from barnabas_kafka.client.errors import AuthenticationError

        self._security = security
        now = security()
        mechanism = None if now is None else now.mechanism
        if mechanism is None:
            return
        try:
            dialog = Authentication(mechanism.mechanism, await _exchange(mechanism))
            request: Request | None = dialog.first()
            while request is not None:
                version = self.version(ApiKey(request.api_key), None)
                kind = registry.api(request.api_key).response
                response = await self._answer(request, kind, version)
                # In a thread, for the hash of a SCRAM password takes milliseconds.
                request = await asyncio.to_thread(dialog.answer, response)
        except (AuthenticationError, UnsupportedError) as error:
            raise PeerAuthenticationError(
                f"the connection to {self._name} failed authentication due to: {error}"
            ) from None
        self._await_expiry(dialog.session_lifetime_ms / 1000)

    def _await_expiry(self, lifetime_s: float) -> None:
        if lifetime_s <= 0 or self._fault is not None:
            return
        delay_s = lifetime_s * random.uniform(*REAUTHENTICATION)  # noqa: S311 - no secret
        self._expiry = asyncio.get_running_loop().call_later(
            delay_s, self._expires, lifetime_s - delay_s
        )

    def _expires(self, left_s: float) -> None:
        name = "authenticating with a broker again"
        background().once(name, self._authenticate_again(max(left_s, CONNECT_TIMEOUT_S)))

    async def _authenticate_again(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s), self._sending:
                await self.authenticate(self._security)
        except TimeoutError:
            reason = f"authenticating again with {self._name} took longer than {timeout_s:g} s"
            self.end(UnreachableError(reason))
        except UnreachableError as error:
            log.warning("%s", error)
            self._fault = error  # It says more than that the peer has closed the connection.
            self.end(error)

    def version(self, api_key: ApiKey, version_max: int | None) -> int:
        """The newest version of a request that both sides know; raises UnsupportedError."""
        ours = registry.api(api_key).versions
        low, high = self._versions.get(api_key, (0, -1))
        version = min(high, ours.max if version_max is None else min(ours.max, version_max))
        if version < max(low, ours.min):
            raise UnsupportedError(
                f"{self._name} knows {api_key.name} in the versions {low} to {high}"
            )
        return version

    async def ask(self, request: Request, kind: type[Answer], version: int) -> Answer:
        """The answer to a request; raises UnreachableError where none comes that can be read."""
        if len(self._pending) + self._waiting >= IN_FLIGHT_MAX:
            raise UnreachableError(f"{self._name} has {IN_FLIGHT_MAX} requests to answer already")
        self._waiting += 1
        try:
            async with self._sending:
                answered = self._send(request, version)
        finally:
            self._waiting -= 1
        return self._decode(await answered, request.api_key, kind, version)

    async def _answer(self, request: Request, kind: type[Answer], version: int) -> Answer:
        """The answer to a request of an authentication, for which others wait."""
        answered = self._send(request, version)
        return self._decode(await answered, request.api_key, kind, version)

    def _send(self, request: Request, version: int) -> "asyncio.Future[bytearray]":
        if self._fault is not None or self._transport is None:
            raise self._fault or UnreachableError(f"{self._name} is not connected")
        self._correlation_id = correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        header = RequestHeader(request.api_key, version, correlation_id, self._client_id)
        body = codec.encode(request, version)
        answered = asyncio.get_running_loop().create_future()
        self._pending[correlation_id] = answered
        self._transport.write(frame(encode_request_header(header), body))
        return answered

    def _decode(self, data: bytearray, key: int, kind: type[Answer], version: int) -> Answer:
        try:
            header_version = registry.api(key).response_header_version(version)
            _, start = decode_response_header(data, header_version)
            return codec.decode_from(kind, data, version, start)[0]
        except DecodeError as error:
            fault = UnreachableError(f"cannot read what {self._name} answers: {error}")
            self.end(fault)
            raise fault from error

    def end(self, fault: UnreachableError) -> None:
        """Close the connection; all requests in flight get `fault`."""
        self.alive = False
        self._fault = self._fault or fault
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._transport is not None:
            self._transport.abort()
        pending, self._pending = self._pending, {}
        for answered in pending.values():
            if not answered.done():
                answered.set_exception(fault)
                answered.exception()  # Retrieved, as a cancelled caller never does.

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The peer has accepted the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self.alive = True

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone, by either side."""
        self.end(UnreachableError(f"the connection to {self._name} is lost: {error or 'closed'}"))

    def get_buffer(self, sizehint: int) -> memoryview:
        """The rest of the length, or of the answer, is to be received next."""
        if self._body is None:
            return memoryview(self._length)[self._received :]
        if self._received == len(self._body):
            # A new one: the transport may still hold a view of the old one.
            grown = bytearray(min(2 * len(self._body), self._size))
            grown[: self._received] = self._body
            self._body = grown
        return memoryview(self._body)[self._received :]

    def buffer_updated(self, count: int) -> None:
        """So many bytes have come."""
        self._received += count
        if self._body is None:
            if self._received < LENGTH_SIZE:
                return
            try:
                limit = self._limit if self.ready else AUTHENTICATION_BYTES_MAX
                size = frame_size(self._length, limit=min(limit, self._limit))
            except FrameError as error:
                self.end(UnreachableError(f"what {self._name} sends is no answer: {error}"))
                return
            self._body, self._received = bytearray(min(size, ALLOCATED_AT_ONCE)), 0
            self._size = size
        if self._received == self._size:
            data, self._body, self._received = self._body, None, 0
            self._take(data)

    def _take(self, data: bytearray) -> None:
        correlation_id = int.from_bytes(data[:4], "big")
        # They come in the order of the requests; another order would be another's answer.
        expected = next(iter(self._pending), None)
        if len(data) < 4 or correlation_id != expected:
            self.end(UnreachableError(f"{self._name} answers what it was not asked"))
            return
        answered = self._pending.pop(correlation_id)
        if not answered.done():
            answered.set_result(data)
