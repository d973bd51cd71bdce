"""A broker of tests that is secured: TLS, users with passwords, and ACLs.

Certificates are of an authority in the broker's directory. `admin` is a super user, `alice` and
`bob` may do what ACLs allow. Passwords are drawn for each broker.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from pathlib import Path
from typing import Final

from barnabas_broker.security.development_pki import Authority

ADMIN: Final = "admin"
USERS: Final = (ADMIN, "alice", "bob")
BROKER: Final = "broker"
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
DAYS: Final = 1
HOSTS: Final = ("127.0.0.1", "localhost", "::1")


class Security:
    """The certificates and users of one broker; made in its directory when it first starts."""

    def __init__(self, directory: Path) -> None:
        authority = Authority.init(directory / "pki", "Barnabas tests")
        self.trust: Final = authority.trust
        self._key_store = authority.issue("broker", HOSTS, days=DAYS)
        self._passwords = {user: secrets.token_urlsafe(16) for user in (BROKER, *USERS)}

    def settings(self) -> dict[str, str]:
        """Those of the broker."""
        users = " ".join(f'user_{name}="{password}"' for name, password in self._passwords.items())
        own = f'username="{BROKER}" password="{self._passwords[BROKER]}"'
        return {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{MODULE} required {own} {users};",
            "ssl.keystore.location": str(self._key_store),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "ssl.truststore.type": "PEM",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{BROKER};User:{ADMIN}",
        }

    def librdkafka(self, user: str) -> dict[str, str]:
        """The properties of a client in librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": self._passwords[user],
            "ssl.ca.location": str(self.trust),
        }

    def java(self, user: str) -> dict[str, str]:
        """The same in Java's."""
        password = self._passwords[user]
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{MODULE} required username="{user}" password="{password}";',
            "ssl.truststore.location": str(self.trust),
            "ssl.truststore.type": "PEM",
        }

    def secured(self, connection: socket.socket) -> ssl.SSLSocket:
        """A connection with TLS."""
        context = ssl.create_default_context(cafile=str(self.trust))
        return context.wrap_socket(connection, server_hostname=HOSTS[0])

    def plain_message(self) -> bytes:
        """What `admin` authenticates with (RFC 4616)."""
        return f"\0{ADMIN}\0{self._passwords[ADMIN]}".encode()
