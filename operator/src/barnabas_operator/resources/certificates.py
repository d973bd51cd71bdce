"""The Secrets of certificates and authorities, and the names that brokers' certificates have.

<cluster>-cluster-ca, -clients-ca   tls.crt, tls.key: issues; ca.crt: all that are trusted;
                                    next.crt, next.key: issues after the next step
<cluster>-cluster-ca-cert           ca.crt: what clients trust; no key. listener-<name>.crt: what
                                    clients of a listener with a certificate of its own trust
                                    beside; empty where that is what their systems trust
<cluster>-broker-tls                broker.pem: key and certificate; cluster-ca.crt, clients-ca.crt;
                                    in a secured cluster admin-token. listener-<name>.pem: key and
                                    chain of a listener with a certificate of its own
<cluster>-operator-tls              operator.pem: key and certificate; cluster-ca.crt (secured)
<cluster>-zookeeper-tls             zookeeper.pem: key and certificate; cluster-ca.crt (secured)
<cluster>-admin-token               token: what admin ports ask for (secured)

None has a hash of its content: it would be one of a key.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from barnabas_operator.api.reading import Metadata
from barnabas_operator.names import ROTATION, ROTATION_SINCE, ClusterNames
from barnabas_operator.resources.objects import Document, document, owner_reference

COMPONENT: Final = "certificates"
KIND: Final = "KafkaCluster"
# Where the brokers' Secret is mounted.
BROKER_PATH: Final = "/etc/barnabas-tls"
# In Secrets for clients and of authorities: the certificates to trust.
TRUSTED: Final = "ca.crt"
KEY_STORE: Final = "broker.pem"
CLUSTER_TRUST: Final = "cluster-ca.crt"
CLIENTS_TRUST: Final = "clients-ca.crt"
OPERATOR_STORE: Final = "operator.pem"
ZOOKEEPER_STORE: Final = "zookeeper.pem"
LISTENER_PREFIX: Final = "listener-"
# In the brokers' Secret, and in its own.
ADMIN_TOKEN: Final = "admin-token"  # noqa: S105 - the key of it
TOKEN: Final = "token"  # noqa: S105


def secret(
    name: str, owner: Metadata, data: Mapping[str, str], *, annotations: Mapping[str, str]
) -> Document:
    """A Secret of the cluster; it goes with its KafkaCluster."""
    labels = ClusterNames(owner.name, owner.namespace).labels(COMPONENT)
    body = document("v1", "Secret", name, owner=owner, labels=labels)
    body["type"] = "Opaque"
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    body["metadata"]["ownerReferences"] = [owner_reference(owner, KIND)]
    body["data"] = {key: b64encode(text.encode()).decode() for key, text in data.items()}
    return body


def listener_store(listener: str) -> str:
    """In the brokers' Secret: what a listener with a certificate of its own shows."""
    return f"{LISTENER_PREFIX}{listener}.pem"


def listener_trust(listener: str) -> str:
    """In the Secret for clients: what those of such a listener trust beside."""
    return f"{LISTENER_PREFIX}{listener}.crt"


def authority_annotations(*, since: str, rotation: str) -> dict[str, str]:
    """What is remembered of the replacement of an authority."""
    return {ROTATION_SINCE: since, **({ROTATION: rotation} if rotation else {})}


def zookeeper_hosts(names: ClusterNames) -> set[str]:
    """The names of an ensemble's members; one certificate serves all members."""
    domain = f"{names.namespace}.svc"
    services = (f"*.{names.zookeeper_nodes}", names.zookeeper)
    return {f"{service}.{domain}" for service in services}


def broker_hosts(names: ClusterNames) -> set[str]:
    """The names of brokers within the Kubernetes cluster; one certificate serves all brokers."""
    domain = f"{names.namespace}.svc"
    found = {"localhost"}
    for service in (f"*.{names.broker_nodes}", names.broker_nodes, names.bootstrap):
        found |= {f"{service}.{domain}", f"{service}.{domain}.cluster.local"}
    return found
