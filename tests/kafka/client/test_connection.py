"""The state machine of a connection, with bytes alone."""

from __future__ import annotations

import pytest

from barnabas_kafka.client.connection import Connection, State
from barnabas_kafka.client.errors import (
    AuthenticationError,
    BrokerError,
    MalformedResponseError,
    UnsupportedVersionError,
)
from barnabas_kafka.client.sasl import Plain, Scram
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.frames import FrameReader, frame
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_response_header,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Response

VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=key, min_version=0, max_version=newest)
        for key, newest in {
            ApiKey.METADATA: 9, ApiKey.SASL_HANDSHAKE: 1, ApiKey.SASL_AUTHENTICATE: 1,
        }.items()
    ]
)  # fmt: skip


def connection(mechanism: Plain | Scram | None = None) -> Connection:
    """A connection that has just been made."""
    if mechanism is None:
        return Connection(client_id="test")
    exchange = mechanism.start("nonce")
    return Connection(client_id="test", mechanism=mechanism.mechanism, exchange=exchange)


def sent(core: Connection) -> list[RequestHeader]:
    """The headers of what it sends now."""
    reader = FrameReader()
    reader.feed(core.take_output())
    return [decode_request_header(each)[0] for each in reader.frames()]


def answer(header: RequestHeader, response: Response, version: int | None = None) -> bytes:
    """A response as a broker sends it."""
    used = header.api_version if version is None else version
    api = registry.api(header.api_key)
    head = encode_response_header(header.correlation_id, api.response_header_version(used))
    return frame(head, codec.encode(response, used))


def ready() -> Connection:
    """A connection without SASL that has learnt the versions."""
    core = connection()
    core.receive(answer(sent(core)[0], VERSIONS))
    assert core.state is State.READY
    return core


def test_learns_versions_before_anything_else() -> None:
    """The newest that both know is used, and none above what a caller knows."""
    core = connection()
    (header,) = sent(core)
    assert (header.api_key, header.api_version, header.client_id) == (18, 3, "test")
    core.receive(answer(header, VERSIONS))
    assert core.version(ApiKey.METADATA) == 9
    assert core.version(ApiKey.METADATA, 4) == 4
    with pytest.raises(UnsupportedVersionError, match="CREATE_TOPICS"):
        core.version(ApiKey.CREATE_TOPICS)


def test_asks_again_in_version_0() -> None:
    """What a broker before Kafka 2.4 answers to version 3 has the format of version 0."""
    core = connection()
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    core.receive(answer(sent(core)[0], refusal, 0))
    (again,) = sent(core)
    assert again.api_version == 0
    core.receive(answer(again, VERSIONS))
    assert core.state is State.READY


def test_a_broker_that_knows_not_even_version_0_is_given_up() -> None:
    """Instead of being asked for ever."""
    core = connection()
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    core.receive(answer(sent(core)[0], refusal, 0))
    with pytest.raises(BrokerError, match="UNSUPPORTED_VERSION"):
        core.receive(answer(sent(core)[0], refusal, 0))


def test_responses_come_in_the_order_of_the_requests() -> None:
    """In whatever pieces; another order would give a caller the answer of another."""
    core = ready()
    first = core.request(MetadataRequest(topics=[]), 9)
    second = core.request(MetadataRequest(topics=[]), 9)
    headers = sent(core)
    data = b"".join(answer(each, MetadataResponse(cluster_id="c")) for each in headers)
    received = [each for at in range(len(data)) for each in core.receive(data[at : at + 1])]
    assert [each.correlation_id for each in received] == [first, second]
    core.request(MetadataRequest(topics=[]), 9)
    core.request(MetadataRequest(topics=[]), 9)
    _, swapped = sent(core)
    with pytest.raises(MalformedResponseError, match="is next"):
        core.receive(answer(swapped, MetadataResponse()))


def test_a_response_without_a_request_ends_the_connection() -> None:
    """Its reader could not know what it is."""
    with pytest.raises(MalformedResponseError, match="without a request"):
        ready().receive(frame(b"\0\0\0\0"))


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request", b"\xff\xff\xff\xff", b"\0\0\0\1x"])
def test_a_malformed_response_is_an_error(data: bytes) -> None:
    """A web server, a length below zero, a frame that is too short."""
    with pytest.raises(MalformedResponseError):
        connection().receive(data)


def test_a_tls_alert_is_recognized() -> None:
    """The most common mistake: plaintext to a TLS listener."""
    with pytest.raises(MalformedResponseError, match="TLS"):
        connection().receive(b"\x15\x03\x03\x00\x02\x02\x46")


def test_authenticates_before_it_is_ready() -> None:
    """Handshake with the mechanism, then the token; the lifetime of the session is kept."""
    core = connection(Plain("u", "p"))
    core.receive(answer(sent(core)[0], VERSIONS))
    (handshake,) = sent(core)
    core.receive(answer(handshake, SaslHandshakeResponse(mechanisms=["PLAIN"])))
    (token,) = sent(core)
    assert core.state is State.AUTHENTICATING
    core.receive(answer(token, SaslAuthenticateResponse(session_lifetime_ms=1000)))
    assert (core.state, core.session_lifetime_ms) == (State.READY, 1000)


def test_a_mechanism_that_is_not_enabled_is_named_with_those_that_are() -> None:
    """So that the reader of the error can choose."""
    core = connection(Plain("u", "p"))
    core.receive(answer(sent(core)[0], VERSIONS))
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    refusal = SaslHandshakeResponse(error_code=code, mechanisms=["SCRAM-SHA-512"])
    with pytest.raises(AuthenticationError, match=r"PLAIN rejected.*the broker has SCRAM-SHA-512"):
        core.receive(answer(sent(core)[0], refusal))


def test_wrong_credentials_raise_the_brokers_message() -> None:
    """And are no reason to try again."""
    core = connection(Plain("u", "p"))
    core.receive(answer(sent(core)[0], VERSIONS))
    core.receive(answer(sent(core)[0], SaslHandshakeResponse(mechanisms=["PLAIN"])))
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    refusal = SaslAuthenticateResponse(error_code=code, error_message="no such user")
    with pytest.raises(AuthenticationError, match="no such user") as raised:
        core.receive(answer(sent(core)[0], refusal))
    assert not raised.value.retriable


def test_a_broker_that_skips_the_proof_of_scram_is_refused() -> None:
    """It says that all is well at the first token, and has not shown that it knows the password."""
    core = connection(Scram("u", "p"))
    core.receive(answer(sent(core)[0], VERSIONS))
    core.receive(answer(sent(core)[0], SaslHandshakeResponse(mechanisms=["SCRAM-SHA-512"])))
    with pytest.raises(AuthenticationError):
        core.receive(answer(sent(core)[0], SaslAuthenticateResponse()))
    assert core.state is not State.READY


def test_a_broker_without_sasl_authenticate_is_refused() -> None:
    """Before Kafka 1.0 tokens travelled as they are, without an error of their own."""
    core = connection(Plain("u", "p"))
    old = [ApiVersion(api_key=ApiKey.SASL_HANDSHAKE, min_version=0, max_version=0)]
    with pytest.raises(UnsupportedVersionError, match="SaslAuthenticate"):
        core.receive(answer(sent(core)[0], ApiVersionsResponse(api_keys=old)))
