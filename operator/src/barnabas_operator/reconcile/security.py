"""Whether a cluster is secured, and the operator's credentials for its brokers.

That is decided when a cluster is created, and recorded: a spec that says otherwise later would take
the listener away from brokers that run. The record is the status, and where that was lost, as after
a restore, the StatefulSets. Those of operators for which clusters were insecure by default have no
annotation. Where they are gone, too, a label of claims says what is secured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from barnabas_kafka.certificates import CertificateError, KeyPair, check_pair, pair_of
from barnabas_operator.api.clusters import (
    ClusterStatus,
    KafkaCluster,
    Security,
    ZooKeeperProtocol,
)
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import ClientTls
from barnabas_operator.ensemble import MemberAccess
from barnabas_operator.kube import (
    CLAIMS,
    CLUSTERS,
    SECRETS,
    STATEFUL_SETS,
    KubeError,
)
from barnabas_operator.names import SECURITY, ZOOKEEPER_PROTOCOL, ClusterNames
from barnabas_operator.plan.claims import claims_of
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.security import unknown_mode
from barnabas_operator.reconcile.context import ClusterCredentials, Context
from barnabas_operator.reconcile.ownership import is_ours, objection_to
from barnabas_operator.resources.certificates import (
    CLUSTER_TRUST,
    OPERATOR_STORE,
    TOKEN,
    secret,
)
from barnabas_operator.resources.zookeeper import client_port
from barnabas_operator.restart_check import AdminAccess

Cluster = Resource[KafkaCluster]


def as_recorded(cluster: Cluster, context: Context) -> tuple[Cluster, str]:
    """The cluster as it is secured, and what in its spec contradicts that. Raises KubeError.

    Listeners whose certificates are issued name the Secrets into which they are written.
    """
    spec = cluster.body.spec
    asked = Security.SECURED if spec.secured else Security.INSECURE
    recorded = _recorded(cluster, context)
    mode = recorded or asked
    secured = mode is Security.SECURED
    status = _record(recorded, cluster, context)
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    wanted = spec.in_mode(secured=secured)
    listeners = (
        each.issued_into(names.listener_certificate(each.name)) for each in wanted.listeners
    )
    wanted = dataclasses.replace(wanted, listeners=tuple(listeners))
    body = dataclasses.replace(cluster.body, spec=wanted, status=status)
    known = Resource(cluster.meta, body, cluster.unknown_fields)
    if spec.insecure is None:
        unknown = recorded is None and bool(_claims(cluster, context))
        return known, unknown_mode(cluster.meta.name) if unknown else ""
    if mode is asked:
        return known, ""
    now, given = mode.value.lower(), str(spec.insecure).lower()
    remedy = "set it back; clients come to TLS by listeners with tls beside the others"
    if secured:
        remedy = "set it back, or create another cluster"
    return known, f"spec.insecure: {given}, but the cluster was created {now}; {remedy}"


def _recorded(cluster: Cluster, context: Context) -> Security | None:
    try:
        return Security(cluster.body.status.security)
    except ValueError:
        pass
    if found := _annotation_values(SECURITY, cluster, context):
        return Security.SECURED if Security.SECURED.value in found else Security.INSECURE
    marks = [(each["metadata"].get("labels") or {}) for each in _claims(cluster, context)]
    secured = any(each.get(SECURITY) == Security.SECURED.value for each in marks)
    return Security.SECURED if secured else None


def _claims(cluster: Cluster, context: Context) -> list[Mapping[str, Any]]:
    """The claims of a cluster's pods, also those that an earlier cluster of its name has left."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    found = context.kube.list(CLAIMS, names.namespace)
    return [each for name in (names.zookeeper, names.broker) for each in claims_of(found, name)]


def _record(recorded: Security | None, cluster: Cluster, context: Context) -> ClusterStatus:
    """The status with what is known by objects, written before anything is done: what is unknown is
    decided by the spec, and of ZooKeeper it is TLS."""
    before = cluster.body.status
    changed: dict[str, str] = {}
    if recorded is not None and before.security != recorded.value:
        changed["security"] = recorded.value
    if recorded is Security.SECURED and _is_without_zookeeper_tls(cluster, context):
        changed["zookeeperProtocol"] = ZooKeeperProtocol.PLAINTEXT.value
    if changed:
        try:
            context.kube.patch_status(CLUSTERS, cluster.meta.namespace, cluster.meta.name, changed)
        except KubeError as error:
            # The objects still say so; that the status is refused the pass reports at its end.
            if not error.refused:
                raise
    return dataclasses.replace(
        before,
        security=changed.get("security", before.security),
        zookeeper_protocol=changed.get("zookeeperProtocol", before.zookeeper_protocol),
    )


def _is_without_zookeeper_tls(cluster: Cluster, context: Context) -> bool:
    """Whether an operator without TLS for ZooKeeper created a secured cluster: it goes on so."""
    if cluster.body.status.zookeeper_protocol:
        return False
    found = _annotation_values(ZOOKEEPER_PROTOCOL, cluster, context)
    return bool(found) and ZooKeeperProtocol.TLS.value not in found


def _annotation_values(annotation: str, cluster: Cluster, context: Context) -> set[str | None]:
    """The values of an annotation of the cluster's StatefulSets, None for one without."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    return {
        (each["metadata"].get("annotations") or {}).get(annotation)
        for name in (names.zookeeper, names.broker)
        if (each := context.kube.get(STATEFUL_SETS, names.namespace, name)) is not None
        and is_ours(each, cluster.meta.uid)
    }


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
