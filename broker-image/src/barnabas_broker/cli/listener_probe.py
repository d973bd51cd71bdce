"""What a port speaks: TLS or not, SASL or not, which mechanisms.

Commands ask it once their own attempt has failed: a listener closes connections of another security
protocol, which to the client looks like a broker that is away. One request is enough. SaslHandshake
with a mechanism that does not exist is refused on every listener of Kafka: with the mechanisms of
the listener, or with ILLEGAL_SASL_STATE where it has no SASL. All of it has one deadline, from the
lookup of the host on, however slowly bytes come.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.host_resolver import HostResolver
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.frames import LENGTH_SIZE, FrameError, FrameReader, frame
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

VERSION: Final = 1
MECHANISM: Final = "ANY"
ANSWER_BYTES_MAX: Final = 1 << 16
PLAINTEXT: Final = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Listener:
    """A port that was recognised."""

    tls: bool
    mechanisms: tuple[str, ...] = ()
    """Of SASL; none where it has no SASL, or closes connections before it answers."""
    wants_certificate: bool = False
    """It closes connections after the handshake of TLS, as brokers do for want of a certificate."""

    @property
    def protocol(self) -> str:
        """As `security.protocol`."""
        security = "SSL" if self.tls else PLAINTEXT
        return f"SASL_{security}" if self.mechanisms else security


def listener_at(host: str, port: int, timeout_s: float) -> Listener | None:
    """What listens there; None where nothing of Kafka is recognised in time."""
    until = time.monotonic() + timeout_s
    resolver = HostResolver()
    try:
        with resolver.connect_blocking(host, port, timeout_s) as plain:
            mechanisms = _mechanisms(plain, until)
        if mechanisms is not None:
            return Listener(tls=False, mechanisms=mechanisms)
        with resolver.connect_blocking(host, port, _left_s(until)) as plain:
            return _over_tls(plain, host, until)
    except OSError:
        return None


def advice(listener: Listener, properties: Mapping[str, str]) -> str:
    """What to set for it, by client properties in librdkafka's terms; empty where they fit."""
    protocol = properties.get("security.protocol", PLAINTEXT).upper()
    certificate = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
    missing: list[str] = []
    if listener.wants_certificate and not any(name in properties for name in certificate):
        missing.append("ssl.certificate.location and ssl.key.location")
    if protocol != listener.protocol and not (listener.wants_certificate and "SSL" in protocol):
        missing.insert(0, f"security.protocol={listener.protocol}")
        missing += _missing(listener, properties)
    if not missing:
        return ""
    return (
        f"speaks {listener.protocol}, the client {protocol}: set {', '.join(missing)}"
        " in the client properties (--command-config)"
    )


def _missing(listener: Listener, properties: Mapping[str, str]) -> list[str]:
    missing = []
    if listener.mechanisms and not {"sasl.mechanism", "sasl.mechanisms"} & properties.keys():
        missing.append(f"sasl.mechanism={' or '.join(listener.mechanisms)}")
        missing.append("sasl.username and sasl.password")
    if listener.tls and not {"ssl.ca.location", "ssl.ca.pem"} & properties.keys():
        missing.append("ssl.ca.location unless this machine trusts its authority")
    return missing


def _over_tls(plain: socket.socket, host: str, until: float) -> Listener | None:
    """The listener behind TLS. Nothing secret is sent, so its certificate is not verified.

    With TLS 1.3 a missing client certificate ends the connection after the handshake.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain.settimeout(_left_s(until))  # Of the handshake as a whole.
    with context.wrap_socket(plain, server_hostname=host) as encrypted:
        try:
            answer = _answer(encrypted, until)
        except (ssl.SSLError, ConnectionError):
            answer = b""
    if not answer:
        return Listener(tls=True, wants_certificate=True)
    mechanisms = _of_answer(answer)
    return None if mechanisms is None else Listener(tls=True, mechanisms=mechanisms)


def _mechanisms(plain: socket.socket, until: float) -> tuple[str, ...] | None:
    """Those of a Kafka listener without TLS; None where no response of Kafka comes."""
    try:
        return _of_answer(_answer(plain, until))
    except ConnectionError:
        return None


def _answer(connected: socket.socket, until: float) -> bytes:
    """What comes for a SaslHandshake, until it is a whole frame or can be none."""
    header = RequestHeader(SaslHandshakeRequest.api_key, VERSION, 0, "barnabas-cli")
    request = SaslHandshakeRequest(mechanism=MECHANISM)
    connected.sendall(frame(encode_request_header(header), codec.encode(request, VERSION)))
    answer = b""
    while len(answer) < ANSWER_BYTES_MAX:
        connected.settimeout(_left_s(until))
        received = connected.recv(ANSWER_BYTES_MAX)
        if not received:
            break
        answer += received
        size = int.from_bytes(answer[:LENGTH_SIZE], "big")
        if len(answer) >= LENGTH_SIZE and not 0 < size <= ANSWER_BYTES_MAX - LENGTH_SIZE:
            break
        if len(answer) >= LENGTH_SIZE + size:
            break
    return answer


def _left_s(until: float) -> float:
    """Seconds until then, of the monotonic clock; raises TimeoutError once it has passed."""
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _of_answer(answer: bytes) -> tuple[str, ...] | None:
    """The mechanisms in it, none where the listener has no SASL; None where it is not Kafka's."""
    frames = FrameReader(limit=ANSWER_BYTES_MAX)
    frames.feed(answer)
    try:
        whole = next(frames.frames(), b"")
        _, body = decode_response_header(whole, 0)
        response = codec.decode_from(SaslHandshakeResponse, whole, VERSION, body)[0]
    except (FrameError, DecodeError):
        return None
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return tuple(response.mechanisms)
    return () if response.error_code == ErrorCode.ILLEGAL_SASL_STATE else None
