"""A broker of tests that is secured: TLS, users with passwords, and ACLs.

Certificates are of an authority in the broker's directory. `admin` is a super user, `alice` and
`bob` may do what ACLs allow. Passwords are drawn for each broker. Users authenticate by
SCRAM-SHA-512; with PLAIN, whose users are in the settings, those are created once it has started.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from barnabas_broker.security.development_pki import Authority

ADMIN: Final = "admin"
USERS: Final = (ADMIN, "alice", "bob")
BROKER: Final = "broker"
MECHANISM: Final = "SCRAM-SHA-512"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
DAYS: Final = 1
HOSTS: Final = ("127.0.0.1", "localhost", "::1")
PASSWORD_BYTES: Final = 16


class Security:
    """The certificates and users of one broker; made in its directory when it first starts."""

    def __init__(self, directory: Path) -> None:
        authority = Authority.init(directory / "pki", "Barnabas tests")
        self.trust: Final = authority.trust
        self._key_store = authority.issue("broker", HOSTS, days=DAYS)
        self._passwords = {user: _password() for user in (BROKER, *USERS)}
        self._created = False

    def settings(self) -> dict[str, str]:
        """Those of the broker."""
        named = {f"user_{name}": self._passwords[name] for name in (BROKER, ADMIN)}
        users = " ".join(f'{name}="{password}"' for name, password in named.items())
        own = f'username="{BROKER}" password="{self._passwords[BROKER]}"'
        return {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f"{PLAIN_MODULE} required {own} {users};"
            ),
            "ssl.keystore.location": str(self._key_store),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "ssl.truststore.type": "PEM",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{BROKER};User:{ADMIN}",
        }

    def started(self, bootstrap_servers: str) -> None:
        """Create the users; the broker remembers them."""
        if not self._created:
            self.create_users(bootstrap_servers, USERS)
            self._created = True

    def create_users(
        self,
        bootstrap_servers: str,
        names: Iterable[str],
        *,
        produce: Iterable[str] = (),
        consume: Iterable[str] = (),
        group: str = "*",
    ) -> None:
        """Create users, or give those that there are further ACLs.

        They may produce to topics, and consume from topics in a group. Raises ClientError.
        """
        from barnabas_broker.testing.users import create  # Late: brings the Kafka client.

        passwords = {name: self._passwords.setdefault(name, _password()) for name in names}
        admin = self._passwords[ADMIN]
        create(
            (bootstrap_servers, ADMIN, admin, self._context()),
            passwords, produce=produce, consume=consume, group=group,
        )  # fmt: skip

    def librdkafka(self, user: str) -> dict[str, str]:
        """The properties of a client in librdkafka's names."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": self._passwords[user],
            "ssl.ca.location": str(self.trust),
        }

    def java(self, user: str) -> dict[str, str]:
        """The same in Java's."""
        login = f'username="{user}" password="{self._passwords[user]}"'
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f"{SCRAM_MODULE} required {login};",
            "ssl.truststore.location": str(self.trust),
            "ssl.truststore.type": "PEM",
        }

    def python(self, user: str) -> dict[str, Any]:
        """The same as kafka-python and aiokafka take it."""
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": user,
            "sasl_plain_password": self._passwords[user],
            "ssl_context": self._context(),
        }

    def secured(self, connection: socket.socket) -> ssl.SSLSocket:
        """A connection with TLS."""
        return self._context().wrap_socket(connection, server_hostname=HOSTS[0])

    def plain_message(self) -> bytes:
        """What `admin` authenticates with (RFC 4616)."""
        return f"\0{ADMIN}\0{self._passwords[ADMIN]}".encode()

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.trust))


def _password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)
