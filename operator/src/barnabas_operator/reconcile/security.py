"""Whether a cluster is secured, and as whom the operator comes to its brokers.

That is decided when a cluster is created, and recorded: a spec that says otherwise later would take
the listener away from brokers that run. The record is the status, and where that was lost, as after
a restore, the StatefulSets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from barnabas_operator.api.clusters import (
    AUTHORIZATION_SETTINGS,
    REPLICATION_NAME,
    REPLICATION_PORT,
    KafkaCluster,
    Security,
    ZooKeeperProtocol,
)
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import ClientTls
from barnabas_operator.certificates import CertificateError, check_pair
from barnabas_operator.ensemble import MemberAccess
from barnabas_operator.kube import CLUSTERS, SECRETS, STATEFUL_SETS, KubeError
from barnabas_operator.names import SECURITY, ZOOKEEPER_PROTOCOL, ClusterNames
from barnabas_operator.plan.certificates import KeyPair, pair_of
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.reconcile.context import ClusterCredentials, Context
from barnabas_operator.reconcile.ownership import is_ours, objection_to
from barnabas_operator.resources.certificates import (
    CLUSTER_TRUST,
    OPERATOR_STORE,
    TOKEN,
    secret,
)
from barnabas_operator.resources.config import zookeeper_tls_settings
from barnabas_operator.resources.zookeeper import client_port
from barnabas_operator.restart_check import AdminAccess

Cluster = Resource[KafkaCluster]
OPEN: Final = "allow.everyone.if.no.acl.found"


def as_recorded(cluster: Cluster, context: Context) -> tuple[Cluster, str]:
    """The cluster as it is secured, and what in its spec contradicts that. Raises KubeError."""
    spec = cluster.body.spec
    asked = Security.SECURED if spec.secured else Security.INSECURE
    recorded = _recorded(cluster, context)
    mode = recorded or asked
    insecure = False if mode is Security.SECURED else (True if spec.insecure else None)
    body = dataclasses.replace(cluster.body, spec=dataclasses.replace(spec, insecure=insecure))
    if mode is Security.SECURED and _is_without_zookeeper_tls(cluster, context):
        protocol = _record_plaintext(cluster, context)
        status = dataclasses.replace(body.status, zookeeper_protocol=protocol)
        body = dataclasses.replace(body, status=status)
    told = Resource(cluster.meta, body, cluster.unknown_fields)
    if spec.insecure is None or mode is asked:
        return told, ""
    now, given = mode.value.lower(), str(spec.insecure).lower()
    remedy = "set it back; clients come to TLS by listeners with tls beside the others"
    if mode is Security.SECURED:
        remedy = "set it back, or create another cluster"
    return told, f"spec.insecure: {given}, but the cluster was created {now}; {remedy}"


def _recorded(cluster: Cluster, context: Context) -> Security | None:
    try:
        return Security(cluster.body.status.security)
    except ValueError:
        pass
    found = _noted(SECURITY, cluster, context)
    if not found:
        return None
    return Security.SECURED if Security.SECURED.value in found else Security.INSECURE


def _is_without_zookeeper_tls(cluster: Cluster, context: Context) -> bool:
    """Whether an operator without TLS for ZooKeeper created a secured cluster: it goes on so."""
    if cluster.body.status.zookeeper_protocol:
        return False
    found = _noted(ZOOKEEPER_PROTOCOL, cluster, context)
    return bool(found) and ZooKeeperProtocol.TLS.value not in found


def _record_plaintext(cluster: Cluster, context: Context) -> str:
    """Record it before anything is done, for what is unknown is TLS."""
    protocol = ZooKeeperProtocol.PLAINTEXT.value
    status = {"zookeeperProtocol": protocol}
    context.kube.patch_status(CLUSTERS, cluster.meta.namespace, cluster.meta.name, status)
    return protocol


def _noted(annotation: str, cluster: Cluster, context: Context) -> set[str | None]:
    """The values of an annotation of the cluster's StatefulSets, None for one without."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    return {
        (each["metadata"].get("annotations") or {}).get(annotation)
        for name in (names.zookeeper, names.broker)
        if (each := context.kube.get(STATEFUL_SETS, names.namespace, name)) is not None
        and is_ours(each, cluster.meta.uid)
    }


def security_problems(cluster: KafkaCluster) -> Iterator[str]:
    """What a secured cluster may not have."""
    spec = cluster.spec
    if not spec.secured:
        return
    for each in spec.listeners:
        if each.tls is None or each.authentication is None:
            text = "needs tls and authentication, for the cluster is secured (spec.insecure)"
            yield f"spec.listeners: {each.name}: {text}"
        if each.port == REPLICATION_PORT or each.name == REPLICATION_NAME:
            text = f"name {REPLICATION_NAME} and port {REPLICATION_PORT} are the brokers' own"
            yield f"spec.listeners: {each.name}: {text}"
    for name in AUTHORIZATION_SETTINGS:
        if name in spec.config:
            yield f"spec.config.{name}: follows from spec.authorization; remove it"
    for name in zookeeper_tls_settings() if cluster.zookeeper_tls else ():
        if name in spec.config:
            yield f"spec.config.{name}: the operator sets it in a secured cluster; remove it"
    if spec.config.get(OPEN, "false").strip().lower() != "false":
        yield f"spec.config.{OPEN}: opens what a secured cluster keeps closed; remove it"


def credentials_of(cluster: Cluster, context: Context) -> ClusterCredentials:
    """What the operator shows to a cluster's brokers. Raises KubeError.

    What is missing or cannot be used is not shown: brokers refuse, and the check of certificates
    says why.
    """
    if not cluster.body.spec.secured:
        return ClusterCredentials()
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    own = _own(names.operator_tls, cluster, context)
    shared = _own(names.admin_token, cluster, context)
    token = shared.text(TOKEN) if shared is not None else ""
    pair = pair_of(own.text(OPERATOR_STORE)) if own is not None else None
    trusted = own.text(CLUSTER_TRUST) if own is not None else ""
    tls, access = None, AdminAccess(token=token)
    if pair is not None and trusted and _fits(pair):
        tls = ClientTls(certificate=pair.certificate, key=pair.key, trusted=trusted)
        try:
            access = AdminAccess(token=token, tls=tls.context())
        except ValueError:
            tls = None
    member = MemberAccess(port=client_port(cluster.body))
    if cluster.body.zookeeper_tls:
        host = f"{names.zookeeper}.{names.namespace}.svc"
        member = dataclasses.replace(member, tls=access.tls, host=host)
    return ClusterCredentials(tls=tls, admin=access, host=names.broker_pod, member=member)


def _fits(pair: KeyPair) -> bool:
    try:
        check_pair(pair)
    except CertificateError:
        return False
    return True


def _own(name: str, cluster: Cluster, context: Context) -> SecretView | None:
    """A Secret of the cluster; None where there is none, or it is another's or not to be read."""
    try:
        found = context.kube.get(SECRETS, cluster.meta.namespace, name)
    except KubeError as error:
        if not error.refused:
            raise
        return None
    body = secret(name, cluster.meta, {}, annotations={})
    return None if found is None or objection_to(found, body) else SecretView.of(found)
