"""What a cluster may not have, by whether it is secured.

The API server checks a part of it with CEL rules, where a spec says by name what its cluster is. It
does not know what a cluster was created as.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas_operator.api.clusters import AUTHORIZATION_SETTINGS, ClusterSpec, KafkaCluster
from barnabas_operator.api.listeners import REPLICATION_NAME, REPLICATION_PORT, ListenerType
from barnabas_operator.resources.config import zookeeper_tls_settings

OPEN: Final = "allow.everyone.if.no.acl.found"


def security_problems(cluster: KafkaCluster) -> Iterator[str]:
    """What a cluster may not have; `status.security` is what it was created as, if it was."""
    if cluster.spec.secured:
        yield from _listener_problems(cluster)
        yield from _setting_problems(cluster)
    else:
        yield from insecure_problems(cluster.spec)


def _listener_problems(cluster: KafkaCluster) -> Iterator[str]:
    for each in cluster.spec.listeners:
        if each.tls is None or each.authentication is None:
            remedy = "for the cluster was created secured"
            if not cluster.status.security:
                remedy = "for clusters are secured by default; give it both, or set insecure: true"
            yield f"spec.listeners: {each.name}: needs tls and authentication, {remedy}"
        if each.port == REPLICATION_PORT or each.name == REPLICATION_NAME:
            text = f"name {REPLICATION_NAME} and port {REPLICATION_PORT} are the brokers' own"
            yield f"spec.listeners: {each.name}: {text}"


def _setting_problems(cluster: KafkaCluster) -> Iterator[str]:
    spec = cluster.spec
    for name in AUTHORIZATION_SETTINGS:
        if name in spec.config:
            yield f"spec.config.{name}: follows from spec.authorization; remove it"
    for name in zookeeper_tls_settings() if cluster.zookeeper_tls else ():
        if name in spec.config:
            yield f"spec.config.{name}: the operator sets it in a secured cluster; remove it"
    if spec.config.get(OPEN, "false").strip().lower() != "false":
        yield f"spec.config.{OPEN}: opens what a secured cluster keeps closed; remove it"


def insecure_problems(spec: ClusterSpec) -> Iterator[str]:
    """What an insecure cluster may not have."""
    if not any(each.type is ListenerType.INTERNAL and each.is_plain for each in spec.listeners):
        text = "one listener must be of type internal, without authentication and tls"
        yield f"spec.listeners: {text}: brokers and operator use it"
    if spec.authorization is None:
        return
    if sum(each.authentication is None for each in spec.listeners) > 1:
        yield "spec.authorization: every listener but one needs authentication"
    for name in AUTHORIZATION_SETTINGS:
        if name in spec.config:
            yield f"spec.config.{name}: follows from spec.authorization; remove it"


def unknown_mode(name: str) -> str:
    """Why a cluster is not created over the claims of an earlier one that may have been either."""
    text = f"there are claims of an earlier cluster {name}, and no record whether it was secured"
    return f"spec.insecure: {text}; set insecure: true if it had no TLS, else insecure: false"
