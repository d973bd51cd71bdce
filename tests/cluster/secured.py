"""Clusters whose brokers connect to each other over SASL_SSL, and what clients need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from barnabas_broker.security.sasl_settings import SCRAM_MODULE
from tests.cluster.running import Cluster
from tests.oracle.certificates import Certificate

LISTENER: Final = "SASL_SSL"
USERS: Final = ("broker", "admin", "alice")
BROKERS_SESSION_MS: Final = 5000
"""How long a session of SASL lasts, so that some are renewed while a test runs."""


class Stores:
    """One key store and one trust store, in a directory that all brokers read."""

    def __init__(self, directory: Path, hosts: Sequence[str] = ()) -> None:
        """The brokers are on these hosts, beside this one."""
        self._hosts = hosts
        directory.mkdir(parents=True, exist_ok=True)
        self.key = directory / "broker.pem"
        self.trust = directory / "trust.pem"

    def write(self, *authorities: Certificate) -> None:
        """A new certificate of the first authority, and trust in all of them."""
        renewed = self.key.with_suffix(".new")
        renewed.write_bytes(b"".join(each.pem for each in authorities))
        renewed.rename(self.trust)
        Certificate("broker", authorities[0], host="127.0.0.1", more_hosts=self._hosts).write_pem(
            renewed
        )
        renewed.rename(self.key)


def broker_settings(stores: Stores) -> dict[str, str]:
    """What brokers, Apache's too, have in common that connect to each other with SCRAM."""
    prefix = f"listener.name.{LISTENER.lower()}"
    module = f'{SCRAM_MODULE} required username="broker" password="broker-secret";'
    return {
        **protected(stores, "SCRAM-SHA-512"),
        f"{prefix}.scram-sha-512.sasl.jaas.config": module,
    }


def protected(stores: Stores, mechanism: str) -> dict[str, str]:
    """The same with any mechanism, which has to be told where credentials are."""
    return {
        "inter.broker.listener.name": LISTENER,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.enabled.mechanisms": mechanism,
        "connections.max.reauth.ms": str(BROKERS_SESSION_MS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stores.key),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stores.trust),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:admin",
    }


def client(user: str, stores: Stores) -> dict[str, str]:
    """The properties of a user's client."""
    return {
        "security.protocol": LISTENER,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        "ssl.ca.location": str(stores.trust),
    }


def create_users(zookeeper: str) -> None:
    """As an operator does before there is a broker."""
    tool = Path(sys.executable).parent / "kafka-configs"
    for user in USERS:
        change = f"SCRAM-SHA-512=[password={user}-secret]"
        where = ["--zookeeper", zookeeper, "--entity-type", "users", "--entity-name", user]
        command = [str(tool), *where, "--alter", "--add-config", change]
        subprocess.run(command, check=True, capture_output=True)


def allow(cluster: Cluster, kind: ResourceType, name: str, operation: AclOperation) -> None:
    """Add an ACL for alice."""
    pattern, allowed = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    acl = AclBinding(kind, name, pattern, "User:alice", "*", operation, allowed)
    cluster.change(lambda admin: admin.create_acls([acl]))
