"""Authenticates the client of one connection by SASL, before the dispatcher sees a request of it.

A session on a SASL listener begins with an authenticator in the place of its dispatcher. The
sequence is that of Kafka's SaslServerAuthenticator:

HANDSHAKE      ApiVersions once, then SaslHandshake, which names the mechanism
AUTHENTICATE   SaslAuthenticate requests after SaslHandshake version 1; after version 0 bare tokens
COMPLETE       the dispatcher serves; SaslHandshake begins the sequence again (KIP-368)
FAILED         nothing is served: the response waits for the delay, then the connection ends

Any other request ends the connection. What a client can hold before it is authenticated is one
frame of `sasl.server.max.receive.size`, for AUTHENTICATION_TIMEOUT_S.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Protocol

from barnabas_broker.invariants import violated
from barnabas_broker.security.oauthbearer import OAuthBearerServer, Validate
from barnabas_broker.security.principals import USER, Principal
from barnabas_broker.security.sasl import PlainServer, SaslError, SaslServer
from barnabas_broker.security.sasl_settings import ListenerSasl
from barnabas_broker.security.scram import (
    NONCE_BYTES,
    ScramCredential,
    ScramMechanism,
    ScramServer,
    TokenLogin,
)
from barnabas_broker.server.process.deferred_responses import DelayedFailure
from barnabas_broker.server.requests.dispatch import HEAD, Caller, Dispatcher, Reply, response_frame
from barnabas_broker.server.requests.handler import UnanswerableError
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import decode_client
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request

AUTHENTICATION_TIMEOUT_S: Final = 30.0
"""How long a connection may take to authenticate."""

REAUTHENTICATION_INTERVAL_S: Final = 1.0
"""Kafka's least time between two re-authentications of a connection."""

SESSION_MAX_S: Final = 365 * 86_400.0
"""No session of limited lifetime lasts longer: a timer cannot."""

_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_FRAME_SIZE_BYTES: Final = 4

FindScram = Callable[[ScramMechanism, str], ScramCredential | None]
FindToken = Callable[[ScramMechanism, str], TokenLogin | None]
FindDecoy = Callable[[ScramMechanism, str, bool], tuple[bytes, int]]


class State(Enum):
    """Where the sequence is."""

    HANDSHAKE = auto()  # No mechanism is agreed on.
    AUTHENTICATE = auto()  # A mechanism is agreed on, and its exchange goes on.
    COMPLETE = auto()  # The client is authenticated, and the dispatcher serves.
    EXPIRED = auto()  # Its session is over: the client has to authenticate again.
    FAILED = auto()  # The connection ends when the delay is over.


@dataclass(frozen=True, slots=True)
class SaslProvider:
    """What the authenticators of one listener share."""

    settings: ListenerSasl
    find_scram: FindScram
    find_token: FindToken
    find_decoy: FindDecoy
    validate_bearer: Validate | None = None

    def authenticator(self, session: "Channel", dispatcher: Dispatcher) -> "SaslAuthenticator":
        """What serves a new session first."""
        return SaslAuthenticator(session, dispatcher, self)

    def server(self, mechanism: str) -> SaslServer:
        """The broker's side of one exchange."""
        if mechanism == "OAUTHBEARER" and self.validate_bearer is not None:
            return OAuthBearerServer(self.validate_bearer)
        scram = ScramMechanism.of(mechanism)
        if scram is None:
            return PlainServer(self.settings.passwords)
        return ScramServer(
            scram,
            lambda user: self.find_scram(scram, user),
            nonce=secrets.token_urlsafe(NONCE_BYTES),
            decoy=lambda name, of_token: self.find_decoy(scram, name, of_token),
            find_token=lambda token_id: self.find_token(scram, token_id),
        )


Served = bytes | list[Item] | DelayedFailure | None


class Channel(Protocol):
    """The session of the client that authenticates."""

    @property
    def sasl_provider(self) -> SaslProvider | None: ...
    def authenticate_by(self, authenticator: "SaslAuthenticator", /) -> None: ...
    def authenticated(self, principal: Principal, /) -> None: ...
    def note_failed_authentication(self, reason: str, /) -> None: ...
    def close(self, reason: str, /) -> None: ...
    def close_when_sent(self) -> None: ...


class SaslAuthenticator:
    """Serves a session's frames until its client is authenticated; see the module."""

    def __init__(self, session: Channel, dispatcher: Dispatcher, provider: SaslProvider) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = session
        self.dispatcher = dispatcher
        self._provider = provider
        self._state = State.HANDSHAKE
        self._versions_asked = False
        self._framed = False  # Whether tokens come in SaslAuthenticate requests.
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._principal: Principal | None = None  # Of the last success.
        self._reauthenticated_at: float | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._timeout: asyncio.TimerHandle | None = self._loop.call_later(
            AUTHENTICATION_TIMEOUT_S, self._timed_out
        )

    @property
    def request_bytes_max(self) -> int:
        """The largest frame that is received."""
        return self._provider.settings.receive_bytes_max

    def close(self) -> None:
        """Stop the timers: the connection has ended."""
        for timer in (self._timeout, self._expiry):
            if timer is not None:
                timer.cancel()
        self._timeout = self._expiry = None

    def serve_run(self, received: memoryview, position: int, caller: Caller) -> None:
        """Requests of this sequence are served one by one."""

    def serve(self, frame: memoryview, caller: Caller) -> Served:
        """Serve one frame without its size.

        Raises DecodeError for malformed requests, UnanswerableError for those out of sequence.
        """
        if self._state is State.FAILED:
            return None
        if self._state is State.EXPIRED:
            return self._serve_expired(frame, caller)
        if self._state is State.AUTHENTICATE and not self._framed:
            return self._token(bytes(frame))
        if len(frame) < HEAD.size:
            raise codec.DecodeError(f"a request of {len(frame)} bytes has no room for its header")
        api_key, version, correlation_id = HEAD.unpack_from(frame)
        if api_key == _API_VERSIONS and self._state is State.HANDSHAKE and not self._versions_asked:
            # A client that learns that its version is too new asks again, as in Kafka.
            self._versions_asked = self.dispatcher.serves(_API_VERSIONS, version)
            # ApiVersions is answered at once.
            return self.dispatcher.serve(frame, caller)  # type: ignore[return-value]
        if self._state is State.HANDSHAKE:
            handshake = _decoded(SaslHandshakeRequest, frame, api_key, version)
            return self._handshake(handshake, version, correlation_id)
        authenticate = _decoded(SaslAuthenticateRequest, frame, api_key, version)
        return self._authenticate(authenticate, version, correlation_id)

    def encode(self, reply: Any, future: "asyncio.Future[Any]") -> list[Item] | Reply:
        """The response of a failure whose delay is over; the connection ends behind it."""
        if not isinstance(reply, DelayedFailure):  # Of a request that came before the expiry.
            return self.dispatcher.encode(reply, future)
        self._loop.call_soon(self._session.close_when_sent)
        return [reply.frame] if reply.frame else []

    def reauthenticate(self, frame: memoryview, caller: Caller) -> Served:
        """Serve a SaslHandshake of a client that is authenticated; None where it comes too soon."""
        now = self._loop.time()
        last = self._reauthenticated_at
        if last is not None and now - last < REAUTHENTICATION_INTERVAL_S:
            return None
        self._reauthenticated_at = now
        # A password may have been revoked since the connection was accepted.
        self._provider = self._session.sasl_provider or self._provider
        self._state = State.HANDSHAKE
        self._versions_asked = True
        self._timeout = self._loop.call_later(AUTHENTICATION_TIMEOUT_S, self._timed_out)
        self._session.authenticate_by(self)
        return self.serve(frame, caller)

    # The sequence.

    def _handshake(
        self, request: SaslHandshakeRequest, version: int, correlation_id: int
    ) -> Served:
        mechanisms = self._provider.settings.mechanisms
        response = SaslHandshakeResponse(mechanisms=list(mechanisms))
        wanted = request.mechanism
        reason = None
        if wanted not in mechanisms:
            reason = "SASL mechanism that the listener does not offer"
        elif self._principal is not None and wanted != self._mechanism:
            reason = "another SASL mechanism during re-authentication"
        if reason is not None:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._fail(response_frame(response, version, correlation_id, 0), reason)
        self._framed = version >= 1
        self._mechanism = wanted
        self._server = self._provider.server(wanted)
        self._state = State.AUTHENTICATE
        return [response_frame(response, version, correlation_id, 0)]

    def _authenticate(
        self, request: SaslAuthenticateRequest, version: int, correlation_id: int
    ) -> Served:
        header_version = registry.api(ApiKey.SASL_AUTHENTICATE).response_header_version(version)

        def framed(response: SaslAuthenticateResponse) -> bytes:
            return response_frame(response, version, correlation_id, header_version)

        try:
            answer = self._evaluate(bytes(request.auth_bytes))
        except SaslError as error:
            during = "authentication" if self._principal is None else "re-authentication"
            generic = (
                f"Authentication failed during {during} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            )
            refused = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=error.client_message or generic,
            )
            return self._fail(framed(refused), str(error))
        lifetime_ms = self._complete_if_done() or 0
        return [
            framed(
                SaslAuthenticateResponse(
                    error_message="", auth_bytes=answer, session_lifetime_ms=lifetime_ms
                )
            )
        ]

    def _token(self, token: bytes) -> Served:
        try:
            answer = self._evaluate(token)
        except SaslError as error:
            return self._fail(b"", str(error))
        self._complete_if_done()
        return [len(answer).to_bytes(_FRAME_SIZE_BYTES, "big") + answer]

    def _evaluate(self, token: bytes) -> bytes:
        assert self._server is not None, violated("a token is evaluated behind its handshake")
        answer = self._server.evaluate(token)
        user = self._server.user
        before = self._principal
        if user is not None and before is not None and before != Principal(USER, user):
            message = (
                f"Cannot change principals during re-authentication from {before} to User:{user}"
            )
            raise SaslError("another user during re-authentication", client_message=message)
        return answer

    def _complete_if_done(self) -> int | None:
        """Hand over to the dispatcher behind the last token; the session's lifetime, if limited."""
        server = self._server
        assert server is not None, violated("an exchange ends behind its handshake")
        user = server.user
        if user is None:
            return None
        self._server = None
        self._state = State.COMPLETE
        self.close()
        self._principal = Principal(USER, user, server.token_authenticated)
        lifetime_ms = self._lifetime_ms(server.expires_at_ms)
        if lifetime_ms is not None:
            lifetime_s = min(lifetime_ms / 1000, SESSION_MAX_S)
            self._expiry = self._loop.call_later(lifetime_s, self._expired)
        self._session.authenticated(self._principal)
        return lifetime_ms

    def _lifetime_ms(self, expires_at_ms: int | None) -> int | None:
        """How long the session lasts (KIP-368): by its listener, and no longer than credentials."""
        limit_ms = self._provider.settings.reauthentication_ms[self._mechanism] or None
        if expires_at_ms is None:
            return limit_ms
        left_ms = max(expires_at_ms - int(time.time() * 1000), 0)
        return left_ms if limit_ms is None else min(left_ms, limit_ms)

    # Its ends.

    def _fail(self, frame: bytes, reason: str) -> DelayedFailure:
        self._state = State.FAILED
        self._server = None
        self.close()
        self._session.note_failed_authentication(reason)
        future: asyncio.Future[None] = self._loop.create_future()
        delay_s = self._provider.settings.failure_delay_ms / 1000
        self._timeout = self._loop.call_later(delay_s, _end, future)
        return DelayedFailure(frame, future)

    def _timed_out(self) -> None:
        self._state = State.FAILED
        self._session.note_failed_authentication("not authenticated in time")
        self._session.close("it did not authenticate in time")

    def _expired(self) -> None:
        """Serve no more requests; those being served are answered.

        The client may have sent its SaslHandshake in time, behind a request that waits.
        """
        self._expiry = None
        if self._state is State.COMPLETE:  # Else it is authenticating again.
            self._state = State.EXPIRED
            self._session.authenticate_by(self)

    def _serve_expired(self, frame: memoryview, caller: Caller) -> Served:
        if len(frame) >= HEAD.size and HEAD.unpack_from(frame)[0] == ApiKey.SASL_HANDSHAKE:
            served = self.reauthenticate(frame, caller)
            if served is not None:
                return served
        self._state = State.FAILED
        self._session.close("its session has expired, and it did not authenticate again")
        return None


def _end(future: "asyncio.Future[None]") -> None:
    if not future.done():  # Else the connection has ended.
        future.set_result(None)


def _decoded(kind: type[Any], frame: memoryview, api_key: int, version: int) -> Any:
    """The request of a frame, which has to be of that kind; raises UnanswerableError if not."""
    expected: type[Request] = kind
    api = registry.api(expected.api_key)
    if api_key != expected.api_key:
        raise UnanswerableError(
            f"API key {api_key} is not served before authentication; expected {api.name}"
        )
    if version not in api.versions:
        raise UnanswerableError(f"{api.name} version {version} is not served here")
    _, body = decode_client(frame, 0, api.request_header_version(version))
    request, _ = codec.decode_from(kind, frame, version, body)
    return request
