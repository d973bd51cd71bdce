"""Handshakes with servers that are none; `test_secure_zookeeper` has one that is."""

import socket
import ssl
import threading

import pytest

from barnabas_broker.zk.tls_handler import TlsHandler
from tests.waiting import ANSWER, seconds


@pytest.fixture
def handler() -> TlsHandler:
    """One that trusts nobody."""
    return TlsHandler(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def test_a_server_without_tls(handler: TlsHandler) -> None:
    """What ZooKeeper does on its plain port: it hangs up. The trouble names the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def hang_up() -> None:
            accepted, _ = server.accept()
            accepted.recv(1)
            accepted.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        limit_s = seconds(ANSWER)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handler.create_connection(
                ("127.0.0.1", port), hostname="zk", timeout=limit_s, use_ssl=True
            )
        thread.join()
    assert (handler.trouble or "").startswith(f"no TLS with zk:{port}: ")


def test_a_refused_tls_connection_fails(handler: TlsHandler) -> None:
    """As of any connection."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            handler.create_connection(held.getsockname(), hostname="zk", timeout=seconds(ANSWER))
    assert "Connection refused" in (handler.trouble or "")
