"""One connection to a broker as a state machine, without I/O.

The owner sends what `take_output` gives and feeds what it receives to `receive`. A connection goes
through the states of `State`; an error in any state is final: the owner closes it.

Invariants: a response belongs to the oldest request without one; no request of a caller is sent
before READY. It knows no clock, so it does not know how old a request is.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, cast

from barnabas_kafka.client.authentication import Authentication
from barnabas_kafka.client.errors import (
    BrokerError,
    MalformedResponseError,
    UnsupportedVersionError,
)
from barnabas_kafka.client.sasl import Exchange
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.codec import DecodeError, EncodeError
from barnabas_kafka.protocol.frames import FRAME_SIZE_MAX, FrameError, FrameReader, frame
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response

SOFTWARE_NAME: Final = "barnabas-kafka"
SOFTWARE_VERSION: Final = "0.1.0"
VERSIONS_VERSION: Final = 3
"""ApiVersions 3 sends the broker which software connects; later versions give a client no more."""


_TLS_ALERT: Final = b"\x15\x03"


class State(Enum):
    """Where a connection is on its way to requests."""

    VERSIONS = auto()
    """Action: ApiVersions in version 3. A broker that does not know it answers in version 0 with
    UNSUPPORTED_VERSION (KIP-511), and is asked again in version 0.
    Transition: HANDSHAKE with SASL, else READY."""
    HANDSHAKE = auto()
    """Action: SaslHandshake. Transition: AUTHENTICATING where the mechanism is enabled."""
    AUTHENTICATING = auto()
    """Action: SaslAuthenticate with each token. Transition: READY when the broker has accepted the
    last token and the exchange has checked the broker."""
    READY = auto()
    """Action: requests are sent; responses come back in the order of the requests."""


@dataclass(frozen=True, slots=True)
class Received:
    """The response to the request of this correlation id."""

    correlation_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class _Sent:
    correlation_id: int
    api_key: int
    version: int


class Connection:
    """The client's end of one connection."""

    def __init__(
        self,
        *,
        client_id: str,
        mechanism: str = "",
        exchange: Exchange | None = None,
        response_bytes_max: int = FRAME_SIZE_MAX,
    ) -> None:
        """`mechanism` and `exchange` belong together; without them there is no SASL."""
        self.state = State.VERSIONS
        self.mechanism: Final = mechanism
        self._client_id = client_id
        self._authentication = None if exchange is None else Authentication(mechanism, exchange)
        self._frames = FrameReader(limit=response_bytes_max)
        self._output = bytearray()
        self._pending: deque[_Sent] = deque()
        self._correlation_id = -1
        self._versions: dict[int, tuple[int, int]] = {}
        self._send(
            ApiVersionsRequest(
                client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
            ),
            VERSIONS_VERSION,
        )

    @property
    def session_lifetime_ms(self) -> int:
        """How long the broker keeps the session after authentication; 0 is for ever (KIP-368)."""
        return 0 if self._authentication is None else self._authentication.session_lifetime_ms

    def take_output(self) -> bytes:
        """What is to be sent now; it is given once."""
        output = bytes(self._output)
        self._output.clear()
        return output

    def version(self, api_key: int, newest: int | None = None) -> int:
        """The newest version both sides know, not above `newest`.

        Raises UnsupportedVersionError where there is none.
        """
        ours = registry.api(api_key).versions
        low, high = self._versions.get(api_key, (0, -1))
        version = min(high, ours.max if newest is None else min(ours.max, newest))
        if version < max(low, ours.min):
            name = ApiKey(api_key).name
            offer = f"has it in versions {low} to {high}" if high >= 0 else "does not have it"
            raise UnsupportedVersionError(f"no common version of {name}: the broker {offer}")
        return version

    def request(self, request: Request, version: int) -> int:
        """Queue a request; its correlation id. Raises UnsupportedVersionError.

        The error means that the request holds what this version cannot express.
        """
        if self.state is not State.READY:
            raise AssertionError(f"no request may be sent in state {self.state.name}")
        return self._send(request, version)

    def receive(self, data: bytes) -> list[Received]:
        """Take in what was received; the responses that are complete with it.

        Raises MalformedResponseError, AuthenticationError or BrokerError; the connection has to be
        closed then.
        """
        self._frames.feed(data)
        received: list[Received] = []
        try:
            for whole in self._frames.frames():
                response = self._decode(whole)
                if self.state is State.READY:
                    received.append(response)
                else:
                    self._advance(response.response)
        except (FrameError, DecodeError) as error:
            hint = "; the listener answers in TLS" if data[:2] == _TLS_ALERT else ""
            raise MalformedResponseError(f"cannot read the response: {error}{hint}") from None
        return received

    def _send(self, request: Request, version: int) -> int:
        self._correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        key = request.api_key
        header = RequestHeader(key, version, self._correlation_id, self._client_id)
        try:
            encoded = frame(encode_request_header(header), codec.encode(request, version))
        except EncodeError as error:
            raise UnsupportedVersionError(str(error)) from None
        self._output += encoded
        self._pending.append(_Sent(self._correlation_id, key, version))
        return self._correlation_id

    def _decode(self, whole: bytes) -> Received:
        if not self._pending:
            raise MalformedResponseError("the peer sent a response without a request")
        sent = self._pending.popleft()
        api = registry.api(sent.api_key)
        correlation_id, body = decode_response_header(
            whole, api.response_header_version(sent.version)
        )
        if correlation_id != sent.correlation_id:
            raise MalformedResponseError(
                f"response to request {correlation_id} where {sent.correlation_id} is next"
            )
        version = sent.version
        if sent.api_key == ApiKey.API_VERSIONS and _unsupported(whole, body):
            version = 0
        return Received(correlation_id, codec.decode_from(api.response, whole, version, body)[0])

    def _advance(self, response: Response) -> None:
        if isinstance(response, ApiVersionsResponse):
            self._take_versions(response)
            return
        request = cast(Authentication, self._authentication).answer(response)
        if request is None:
            self.state = State.READY
            return
        self.state = State.AUTHENTICATING
        self._send(request, self.version(ApiKey.SASL_AUTHENTICATE))

    def _take_versions(self, response: ApiVersionsResponse) -> None:
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and not self._versions:
            self._versions = {ApiKey.API_VERSIONS: (0, 0)}
            self._send(ApiVersionsRequest(), 0)
            return
        if response.error_code != ErrorCode.NONE:
            raise BrokerError(response.error_code, "the broker does not list its API versions")
        self._versions = {
            api.api_key: (api.min_version, api.max_version) for api in response.api_keys
        }
        if self._authentication is None:
            self.state = State.READY
            return
        self.state = State.HANDSHAKE
        version = self.version(ApiKey.SASL_HANDSHAKE)
        if version < 1:  # Tokens without SaslAuthenticate, before Kafka 1.0.
            raise UnsupportedVersionError("the broker does not have SaslAuthenticate")
        self._send(self._authentication.first(), version)


def _unsupported(whole: bytes, body: int) -> bool:
    """Whether an ApiVersions response begins with UNSUPPORTED_VERSION: it has version 0 then."""
    return int.from_bytes(whole[body : body + 2], "big", signed=True) == int(
        ErrorCode.UNSUPPORTED_VERSION
    )
