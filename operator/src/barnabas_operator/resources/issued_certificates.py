"""The Certificates by which cert-manager has an issuer sign what listeners show.

cert-manager writes key and chain into a Secret, which it renews. The operator reads that as it does
one that a person gives; the key never leaves Kubernetes' own storage.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import Listener, ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.writing import to_json
from barnabas_operator.names import ClusterNames
from barnabas_operator.resources import objects
from barnabas_operator.resources.objects import Document

Object = Mapping[str, Any]

API_VERSION: Final = "cert-manager.io/v1"
CERTIFICATE: Final = "Certificate"
COMPONENT: Final = "broker"
USAGES: Final = ("digital signature", "key encipherment", "server auth")


def issued_certificates(
    cluster: Resource[KafkaCluster],
    hosts: Mapping[str, Collection[str]],
    found: Mapping[tuple[str, str], Object],
) -> list[Document]:
    """A Certificate for each listener with an issuer of which a host is known."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    bodies = []
    for each in cluster.body.spec.listeners:
        name = names.listener_certificate(each.name)
        before = found.get((CERTIFICATE, name))
        named = {*hosts.get(each.name, ()), *_kept(each, before)}
        if each.issuer is not None and named:
            body = _certificate(cluster, each, names, named)
            bodies.append(objects.owned(body, owner=cluster.meta, kind=cluster.kind))
    return bodies


def pending(
    cluster: Resource[KafkaCluster], found: Mapping[tuple[str, str], Object]
) -> Iterator[str]:
    """What is not issued yet, and why, in the words of cert-manager."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    for each in cluster.body.spec.listeners:
        if each.issuer is None:
            continue
        name = names.listener_certificate(each.name)
        body = found.get((CERTIFICATE, name))
        conditions = ((body or {}).get("status") or {}).get("conditions") or ()
        ready: Object = next((one for one in conditions if one.get("type") == "Ready"), {})
        if ready.get("status") != "True":
            why = ready.get("message") or "cert-manager says nothing about it yet"
            text = f"listener {each.name}: Certificate {name} is not issued yet"
            yield f"{text} by {each.issuer.kind} {each.issuer.name}: {why}"


def _kept(listener: Listener, before: Object | None) -> set[str]:
    """The hosts that stay named: a node's address is unknown while its pod is replaced.

    One that is issued again for each restart would use up what an issuer allows.
    """
    if before is None or listener.type is not ListenerType.NODEPORT:
        return set()
    if listener.advertised_host or listener.configuration.advertised_host_template:
        return set()
    spec = before.get("spec") or {}
    return {*(spec.get("dnsNames") or ()), *(spec.get("ipAddresses") or ())}


def _certificate(
    cluster: Resource[KafkaCluster], listener: Listener, names: ClusterNames, hosts: set[str]
) -> Document:
    name = names.listener_certificate(listener.name)
    body = objects.document(
        API_VERSION,
        CERTIFICATE,
        name,
        owner=cluster.meta,
        labels=names.labels(COMPONENT),
    )
    addresses = sorted(filter(_is_address, hosts))
    days = cluster.body.spec.certificates.validity_days
    body["spec"] = {
        "secretName": name,
        "issuerRef": to_json(listener.issuer),
        # As cert-manager writes durations; renewed after two thirds, as what the operator issues.
        "duration": f"{days * 24}h0m0s",
        "renewBefore": f"{days * 8}h0m0s",
        "usages": list(USAGES),
        "privateKey": {
            "algorithm": "ECDSA",
            "encoding": "PKCS8",
            "rotationPolicy": "Always",
            "size": 256,
        },
    }
    subject = {"dnsNames": sorted(hosts - {*addresses}), "ipAddresses": addresses}
    body["spec"] |= {key: values for key, values in subject.items() if values}
    return body


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
