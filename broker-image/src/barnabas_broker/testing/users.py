"""Users of a secured broker of tests: SCRAM credentials and ACLs, by the admin client."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping

from barnabas_kafka.client import (
    Acl,
    AclOperation,
    AclResourceType,
    Admin,
    ClientConfig,
    Plain,
    ScramCredential,
    alter_scram_credentials,
    create_acls,
)

_PRODUCER = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_CONSUMER = (AclOperation.READ, AclOperation.DESCRIBE)

Login = tuple[str, str, str, ssl.SSLContext]
"""Address, user, password, TLS."""


def create(
    login: Login,
    passwords: Mapping[str, str],
    *,
    produce: Iterable[str] = (),
    consume: Iterable[str] = (),
    group: str = "*",
) -> None:
    """Set the passwords of users, and create their ACLs. Raises ClientError."""
    bootstrap, admin, password, tls = login
    config = ClientConfig(bootstrap_servers=bootstrap, tls=tls, sasl=Plain(admin, password))
    topics = tuple(produce), tuple(consume)
    acls = [acl for name in passwords for acl in _acls(f"User:{name}", *topics, group)]
    credentials = [ScramCredential(name, it, "SCRAM-SHA-512") for name, it in passwords.items()]
    with Admin(config) as client:
        client.call(alter_scram_credentials(credentials)).all()
        if acls:
            client.call(create_acls(acls)).all()


def _acls(
    principal: str, produce: tuple[str, ...], consume: tuple[str, ...], group: str
) -> Iterator[Acl]:
    """As kafka-acls makes them for a producer and a consumer."""
    wanted = [
        *((AclResourceType.TOPIC, name, each) for name in produce for each in _PRODUCER),
        *((AclResourceType.TOPIC, name, each) for name in consume for each in _CONSUMER),
    ]
    if consume:
        wanted.append((AclResourceType.GROUP, group, AclOperation.READ))
    for kind, name, operation in dict.fromkeys(wanted):
        yield Acl(resource_type=kind, resource_name=name, principal=principal, operation=operation)
