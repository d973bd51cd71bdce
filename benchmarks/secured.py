"""Brokers with TLS, SCRAM and ACLs beside their plain listener, and what clients need for them.

The plain listener is that of the other benchmarks; what its clients may do is decided by the same
rules as for users, with the anonymous principal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas_broker.security.sasl_settings import PLAIN_MODULE, SCRAM_MODULE
from benchmarks.targets import Broker, admin_client
from benchmarks.topics import PREFIX
from tests.cluster.secured import Stores
from tests.oracle.apache import free_port
from tests.oracle.certificates import Certificate

MECHANISM: Final = "SCRAM-SHA-512"
ITERATIONS: Final = 4096
ADMIN: Final = "admin"
USER: Final = "alice"
PASSWORD: Final = "of-the-benchmark"
AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
ANONYMOUS: Final = "User:ANONYMOUS"
TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener of a running broker."""

    bootstrap: str
    pid: int


class Security:
    """A setup of brokers: certificates of one authority, a user, and so many ACLs; 0 for none."""

    def __init__(self, directory: Path, *, acls: int = 0) -> None:
        self.stores = Stores(directory)
        self.stores.write(Certificate("authority"))
        self.acls = acls
        self._java = directory / "client.properties"
        self._java.write_text("".join(f"{line}\n" for line in self.java_client))

    def settings(self, plain: str) -> Mapping[str, str]:
        """Listeners with TLS 1.3 beside the plain one, and the authorizer where there are ACLs."""
        prefix = "listener.name.sasl_ssl"
        login = f'username="{ADMIN}" password="{PASSWORD}" user_{ADMIN}="{PASSWORD}"'
        tls, sasl = (f"127.0.0.1:{free_port()}" for _ in range(2))
        authorizer = {
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{ADMIN}",
        }
        return {
            "listeners": f"PLAINTEXT://{plain},SSL://{tls},SASL_SSL://{sasl}",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
            f"{prefix}.{MECHANISM.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            f"{prefix}.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {login};",
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.stores.key),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.stores.trust),
            **(authorizer if self.acls else {}),
        }

    def complete(self, broker: Broker) -> None:
        """Create the user and the ACLs."""
        admin = admin_client(listener(broker, "SASL_SSL").bootstrap, **self._librdkafka("PLAIN"))
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        change = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
        waiting = [*admin.alter_user_scram_credentials([change]).values()]
        if self.acls:
            waiting += admin.create_acls(_rules(self.acls), request_timeout=TIMEOUT_S).values()
        for answer in waiting:
            answer.result(TIMEOUT_S)

    @property
    def trust(self) -> Path:
        """The certificate of the authority."""
        return self.stores.trust

    @property
    def librdkafka(self) -> dict[str, str]:
        """What the user's clients of librdkafka need."""
        return self._librdkafka(MECHANISM)

    def _librdkafka(self, mechanism: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": USER if mechanism == MECHANISM else ADMIN,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.stores.trust),
        }

    @property
    def java_client(self) -> list[str]:
        """What the user's Java clients need, as properties."""
        login = f'{SCRAM_MODULE} required username="{USER}" password="{PASSWORD}";'
        return [
            "security.protocol=SASL_SSL",
            f"sasl.mechanism={MECHANISM}",
            f"sasl.jaas.config={login}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.stores.trust}",
        ]

    @property
    def java_properties(self) -> Path:
        """The same in a file."""
        return self._java


def listener(broker: Broker, name: str) -> Listener:
    """The listener of this name."""
    addresses = dict(it.split("://") for it in broker.settings["listeners"].split(","))
    return Listener(addresses[name], broker.pid)


def _rules(count: int) -> list[AclBinding]:
    """What the anonymous principal needs, and so many others that the sum is `count`.

    Every tenth of these is about the topics of the benchmark, for another user.
    """
    prefixed, literal = ResourcePatternType.PREFIXED, ResourcePatternType.LITERAL
    rules = [
        _rule(ResourceType.TOPIC, PREFIX, ANONYMOUS, AclOperation.ALL, prefixed),
        _rule(ResourceType.GROUP, "benchmark", ANONYMOUS, AclOperation.ALL),
        _rule(ResourceType.BROKER, "kafka-cluster", ANONYMOUS, AclOperation.DESCRIBE_CONFIGS),
    ]
    for number in range(count - len(rules)):
        user = f"User:user-{number}"
        kinds = (
            (ResourceType.TOPIC, f"orders-{number}", AclOperation.READ, literal),
            (ResourceType.TOPIC, f"team-{number}-", AclOperation.WRITE, prefixed),
            (ResourceType.GROUP, f"readers-{number}", AclOperation.READ, literal),
        )
        resource, name, operation, pattern = kinds[number % 3]
        if number % 10 == 0:
            resource, name, pattern = ResourceType.TOPIC, PREFIX, prefixed
        rules.append(_rule(resource, name, user, operation, pattern))
    return rules


def _rule(
    resource: ResourceType,
    name: str,
    user: str,
    operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    return AclBinding(resource, name, pattern, user, "*", operation, AclPermissionType.ALLOW)
