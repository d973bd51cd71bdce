"""The text files that ZooKeeper and brokers read, rendered from templates; `local` uses them too.

A name that a template uses without a value is an error (StrictUndefined), never an empty line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import jinja2

from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.clusters import AUTHORIZER
from barnabas_operator.api.listeners import ADMIN_PORT, REPLICATION, Listener, ListenerType
from barnabas_operator.names import (
    ELECTION_PORT,
    PEER_PORT,
    SECURE_ZOOKEEPER_PORT,
    ZOOKEEPER_PORT,
    ClusterNames,
    principal_of,
)
from barnabas_operator.resources.certificates import (
    ADMIN_TOKEN,
    BROKER_PATH,
    CLIENTS_TRUST,
    CLUSTER_TRUST,
    KEY_STORE,
    ZOOKEEPER_STORE,
    listener_store,
)

# The user is the common name, in the characters that names of users have. Others, which a given
# authority may sign, could pass for another principal: they match no rule, and are refused.
USER_OF_CERTIFICATE: Final = "RULE:^CN=([a-zA-Z0-9._@-]+)$/$1/"
# The whole name of a certificate, whatever rules the resource's settings have for all listeners.
WHOLE_NAME: Final = "DEFAULT"
BROKER_VOLUME: Final = "/var/lib/barnabas"
# Not the volume itself: a fresh file system may have a lost+found, and that is no partition.
BROKER_DATA: Final = f"{BROKER_VOLUME}/data"
ZOOKEEPER_DATA: Final = "/var/lib/zookeeper"
# Where the image's entry keeps the Secret's files for ZooKeeper, which watches their directory.
ZOOKEEPER_TLS: Final = "/run/zookeeper-tls"


def server_properties(
    cluster: str,
    *,
    listeners: Sequence[Listener],
    config: Mapping[str, str],
    brokers: int = 1,
    zookeeper_connect: str | None,
    data_directory: str = BROKER_DATA,
    tls_directory: str = BROKER_PATH,
    host: str = "0.0.0.0",  # noqa: S104 - all interfaces of a pod
    admin_port: int = ADMIN_PORT,
) -> str:
    """A broker's server.properties, except what differs from broker to broker.

    Without `zookeeper_connect` the broker keeps coordination data itself. Of topics that brokers
    keep for themselves there are as many replicas as `brokers` can hold, unless `config` says so.
    """
    config = {**sasl_settings(listeners), **tls_settings(listeners, tls_directory), **config}
    if zookeeper_connect is not None:
        config = {**internal_topics(brokers), **config}
    return _render(
        "server.properties.j2",
        cluster=cluster,
        listeners=",".join(f"{each.kafka_name}://{host}:{each.port}" for each in listeners),
        protocol_map=",".join(f"{each.kafka_name}:{each.security_protocol}" for each in listeners),
        inter_broker_listener=inter_broker_listener(listeners).kafka_name,
        admin_listener=f"{host}:{admin_port}",
        data_directory=data_directory,
        zookeeper_connect=zookeeper_connect,
        config=config,
    )


def ensemble_settings() -> dict[str, str]:
    """How long a broker waits for an ensemble that starts beside it.

    One that gives up is restarted with back-off, and connects later than it could.
    """
    return {"zookeeper.connection.timeout.ms": "120000"}


def internal_topics(brokers: int) -> dict[str, str]:
    """Replicas of offsets and transactions: Kafka's three, or as many as there are brokers."""
    replicas = min(brokers, 3)
    return {
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min(replicas, 2)),
    }


def sasl_settings(listeners: Sequence[Listener]) -> dict[str, str]:
    """The mechanism of each listener with authentication."""
    return {
        f"listener.name.{each.name}.sasl.enabled.mechanisms": each.authentication.type.mechanism
        for each in listeners
        if each.authentication is not None and each.authentication.type.mechanism
    }


def tls_settings(listeners: Sequence[Listener], directory: str = BROKER_PATH) -> dict[str, str]:
    """Key store of each listener with TLS; the trust store of one that asks for certificates.

    They are in `directory`. Brokers read changed files again, so a renewal changes none of this.
    """
    settings: dict[str, str] = {}
    for each in listeners:
        if each.tls is None:
            continue
        prefix = f"listener.name.{each.name}."
        settings[f"{prefix}ssl.keystore.type"] = "PEM"
        store = listener_store(each.name) if each.own_certificate is not None else KEY_STORE
        settings[f"{prefix}ssl.keystore.location"] = f"{directory}/{store}"
        if each.authentication and each.authentication.type is AuthenticationType.TLS:
            own = is_replication(each)
            trust = CLUSTER_TRUST if own else CLIENTS_TRUST
            settings[f"{prefix}ssl.client.auth"] = "required"
            settings[f"{prefix}ssl.truststore.type"] = "PEM"
            settings[f"{prefix}ssl.truststore.location"] = f"{directory}/{trust}"
            rules = WHOLE_NAME if own else USER_OF_CERTIFICATE
            settings[f"{prefix}ssl.principal.mapping.rules"] = rules
            if own:
                settings[f"{prefix}ssl.endpoint.identification.algorithm"] = "https"
    return settings


def secured_settings(
    names: ClusterNames, super_users: Sequence[str], directory: str = BROKER_PATH
) -> dict[str, str]:
    """What brokers of a secured cluster have beside their listeners.

    Brokers and operator are known by the whole names of their certificates, which no name of a
    user can be: it has no `=`.
    """
    own = (names.broker, names.operator)
    users = (*map(principal_of, own), *super_users)
    return {
        "authorizer.class.name": AUTHORIZER,
        "super.users": ";".join(f"User:{name}" for name in users),
        "barnabas.admin.token.file": f"{directory}/{ADMIN_TOKEN}",
        "barnabas.admin.ssl.keystore.type": "PEM",
        "barnabas.admin.ssl.keystore.location": f"{directory}/{KEY_STORE}",
    }


def zookeeper_tls_settings() -> dict[str, str]:
    """How brokers come to an ensemble whose traffic is TLS; their znodes are their own."""
    return {
        "zookeeper.set.acl": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.endpoint.identification.algorithm": "HTTPS",
        # What ZooKeeper offers by default; the default of brokers, which is Kafka's, is TLSv1.2.
        "zookeeper.ssl.protocol": "TLSv1.3",
        "zookeeper.ssl.keystore.type": "PEM",
        "zookeeper.ssl.keystore.location": f"{BROKER_PATH}/{KEY_STORE}",
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.ssl.truststore.location": f"{BROKER_PATH}/{CLUSTER_TRUST}",
    }


def is_replication(listener: Listener) -> bool:
    """Whether a listener is the operator's own, on whatever port."""
    return listener == replace(REPLICATION, port=listener.port)


def inter_broker_listener(listeners: Sequence[Listener]) -> Listener:
    """The listener that brokers use among themselves, and the operator to ask them."""
    for each in listeners:
        if is_replication(each):
            return each
    for each in listeners:
        if each.type is ListenerType.INTERNAL and each.is_plain:
            return each
    text = "one listener must be of type internal, without authentication and tls"
    raise ValueError(f"spec.listeners: {text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleMember:
    """Where a member of an ensemble is reached by the others."""

    host: str
    peer_port: int = PEER_PORT
    election_port: int = ELECTION_PORT


def zoo_cfg(
    cluster: str,
    *,
    members: Sequence[EnsembleMember],
    data_directory: str = ZOOKEEPER_DATA,
    client_port: int = ZOOKEEPER_PORT,
    client_address: str | None = None,
    tls: bool = False,
) -> str:
    """The zoo.cfg of a member; a single member runs standalone.

    With `client_address` it listens at that address alone, and to the others at its own host's.
    With `tls` clients and members come over TLS and show certificates; the port without is for the
    pod's own probes.
    """
    return _render(
        "zoo.cfg.j2",
        cluster=cluster,
        members=members,
        data_directory=data_directory,
        client_port=client_port,
        client_address=client_address,
        secure_port=SECURE_ZOOKEEPER_PORT if tls else None,
        key_store=f"{ZOOKEEPER_TLS}/{ZOOKEEPER_STORE}",
        trust_store=f"{ZOOKEEPER_TLS}/{CLUSTER_TRUST}",
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("barnabas_operator.resources"),
        undefined=jinja2.StrictUndefined,
        # Neither template is HTML; what needs escaping goes through the filters below.
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["property_name"] = _property_name
    environment.filters["property_value"] = property_value
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(values)


def _property_name(text: str) -> str:
    return re.sub(r"([\\:=#! ])", r"\\\1", _one_line(text))


def property_value(text: str) -> str:
    """A text as the value of a property in a file."""
    # A leading space would be eaten, a line end would begin another property.
    escaped = _one_line(text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _one_line(text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    # The format is Latin-1; what is beyond ASCII is written as UTF-16 units.
    return "".join(each if each.isascii() else _utf16_units(each) for each in escaped)


def _utf16_units(character: str) -> str:
    data = character.encode("utf-16-be")
    return "".join(f"\\u{data[i : i + 2].hex()}" for i in range(0, len(data), 2))
