"""Settings of a client. Names and defaults are those of Kafka's AdminClient where it has them."""

import ssl
from dataclasses import dataclass
from typing import Final

from barnabas_kafka.client.cluster import Address
from barnabas_kafka.client.sasl import Mechanism
from barnabas_kafka.protocol.frames import FRAME_SIZE_MAX

DEFAULT_PORT: Final = 9092


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How to reach a cluster. Times are in seconds."""

    bootstrap_servers: str
    """`host:port`, several separated by commas."""
    client_id: str = "barnabas-admin"
    tls: ssl.SSLContext | None = None
    """TLS with this context; its `check_hostname` decides whether the host name is verified."""
    sasl: Mechanism | None = None
    timeout_s: float = 60.0
    """For one call with all its attempts (default.api.timeout.ms)."""
    request_timeout_s: float = 30.0
    """For one attempt (request.timeout.ms)."""
    connect_timeout_s: float = 10.0
    """For one connection with TLS and SASL (socket.connection.setup.timeout.ms)."""
    probe_after_s: float = 2.0
    """A response that is later makes the client test with a new connection whether the broker is
    still there, so that a broker whose node is gone is not waited for."""
    metadata_max_age_s: float = 300.0
    """As metadata.max.age.ms."""
    idle_s: float = 300.0
    """A connection without requests is closed after this time (connections.max.idle.ms)."""
    response_bytes_max: int = FRAME_SIZE_MAX

    def addresses(self) -> list[Address]:
        """The bootstrap servers; raises ValueError where one is not `host:port`."""
        return [parse_address(each) for each in self.bootstrap_servers.split(",") if each.strip()]


def parse_address(text: str) -> Address:
    """`host`, `host:port`, `[v6]:port` or `SCHEME://host:port`; raises ValueError."""
    address = text.strip().rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text.strip()!r} is not a host:port")
    return Address(host.strip("[]"), int(port))
