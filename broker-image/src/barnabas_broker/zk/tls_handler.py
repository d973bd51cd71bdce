"""Connections to ZooKeeper over TLS by a context of ours.

kazoo would make one for each connection, from files: it trusts the system's authorities beside
those of a trust store, takes any version from TLS 1.0 on, and knows neither PKCS12 nor a choice
of ciphers.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from barnabas_broker.zk.ensemble_handler import EnsembleHandler


class TlsHandler(EnsembleHandler):
    """Connections that are secured before anything is sent."""

    def __init__(
        self,
        context: ssl.SSLContext,
        renewed: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        """`renewed` is asked before each connection for a context to use from then on."""
        super().__init__()
        self._context = context
        self._renewed = renewed
        #: why the last attempt failed; None after one that did not
        self.trouble: str | None = None

    def connect(
        self, address: tuple[str, int], hostname: str | None, timeout: float, **_files: Any
    ) -> ssl.SSLSocket:
        """Connect and shake hands, each within `timeout` seconds; raises OSError."""
        self._context = self._renewed() or self._context
        try:
            plain = socket.create_connection(address, timeout)
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                secured = self._context.wrap_socket(plain, server_hostname=hostname)
            except BaseException:
                plain.close()
                raise
        except ssl.SSLCertVerificationError as error:
            self.trouble = f"the certificate of {hostname} is not accepted: {error.verify_message}"
            raise
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or str(error)
            self.trouble = f"no TLS with {hostname}:{address[1]}: {reason}"
            raise
        self.trouble = None
        return secured
