"""Clients whose TLS handshake fails learn why, by the alert that OpenSSL has for it.

Without it a client sees a connection that was closed, as by a broker that is away.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from barnabas_broker.testing import Broker
from barnabas_kafka.client import Admin, AuthenticationError, ClientConfig, describe_cluster
from tests.broker.server.running import running_node
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, RUN, seconds


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`trust.pem`, `broker.pem`, and `stranger.pem` of an authority that the broker distrusts."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = Certificate("authority")
    authority.write_trust(directory / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(directory / "broker.pem")
    Certificate("stranger", Certificate("another")).write_pem(directory / "stranger.pem")
    return directory


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def port(
    tmp_path_factory: pytest.TempPathFactory, certificates: Path, request: pytest.FixtureRequest
) -> Iterator[int]:
    """A listener that requires client certificates, on either event loop: each has its own TLS."""
    settings = {
        "listeners": "SSL://localhost:0,PLAINTEXT://localhost:0",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.truststore.location": str(certificates / "trust.pem"),
    }
    if request.param == "asyncio":
        with running_node(tmp_path_factory.mktemp("data"), settings) as node:
            yield next(each.port for each in node.listeners if each.name == "SSL")
    else:
        with Broker(settings) as broker:
            yield int(broker.listeners["SSL"].rpartition(":")[2])


def alert(port: int, context: ssl.SSLContext) -> str:
    """What OpenSSL's reason is for the failure of a client."""
    with socket.create_connection(("localhost", port), seconds(ANSWER)) as plain:
        with pytest.raises(ssl.SSLError) as failure:  # noqa: SIM117 - either step may fail
            with context.wrap_socket(plain, server_hostname="localhost") as encrypted:
                encrypted.recv(1)
        return failure.value.reason


def client(certificates: Path, version: ssl.TLSVersion) -> ssl.SSLContext:
    """One that trusts the broker."""
    context = ssl.create_default_context(cafile=str(certificates / "trust.pem"))
    context.minimum_version = context.maximum_version = version
    return context


def test_a_missing_certificate(port: int, certificates: Path) -> None:
    """TLS 1.3 has an alert of its own; there the client is done before the broker looks."""
    reason = alert(port, client(certificates, ssl.TLSVersion.TLSv1_3))
    assert reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    reason = alert(port, client(certificates, ssl.TLSVersion.TLSv1_2))
    assert reason == "SSLV3_ALERT_HANDSHAKE_FAILURE"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_certificate_of_another_authority(
    port: int, certificates: Path, version: ssl.TLSVersion
) -> None:
    """It is not one that is missing."""
    context = client(certificates, version)
    context.load_cert_chain(certificates / "stranger.pem")
    assert alert(port, context) == "TLSV1_ALERT_UNKNOWN_CA"


def test_librdkafka_names_the_alert(port: int, certificates: Path) -> None:
    """It retries, and its error callback has the reason each time."""
    errors: list[KafkaError] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates / "trust.pem"),
        "error_cb": errors.append,
        "log_level": 0,
    }
    admin = AdminClient(settings)
    with suppress(KafkaException):
        admin.list_topics(timeout=1)
    admin.poll(0)
    assert any("alert certificate required" in error.str() for error in errors), errors


def test_the_admin_client_does_not_retry(port: int, certificates: Path) -> None:
    """Its certificate will be missing the next time, too."""
    config = ClientConfig(
        bootstrap_servers=f"localhost:{port}",
        tls=ssl.create_default_context(cafile=str(certificates / "trust.pem")),
        timeout_s=seconds(RUN),
    )
    with Admin(config) as admin, pytest.raises(AuthenticationError, match=r"(?i)certificate.?req"):
        admin.call(describe_cluster())
