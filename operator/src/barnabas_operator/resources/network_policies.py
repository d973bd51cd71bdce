"""NetworkPolicies: which pods may open connections to those of a secured cluster.

ZooKeeper is reached by what the operator runs alone; in clusters from before TLS for ZooKeeper its
traffic is neither encrypted nor authenticated. Kubernetes accepts these objects always; it is
the network plugin that enforces them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import ADMIN_PORT, REPLICATION_PORT
from barnabas_operator.api.pods import PodTemplate
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import ELECTION_PORT, PEER_PORT, ClusterNames
from barnabas_operator.resources import objects, pods
from barnabas_operator.resources.objects import Document
from barnabas_operator.resources.zookeeper import client_port

Peer = dict[str, Any]


def network_policies(
    cluster: Resource[KafkaCluster],
    *,
    operator_namespace: str,
    members: Mapping[str, str] | None = None,
    brokers: Mapping[str, str] | None = None,
) -> list[Document]:
    """One for the ensemble and one for the brokers; none for a cluster that is not secured.

    `members` and `brokers` are the selectors of StatefulSets that exist: they cannot change.
    """
    spec = cluster.body.spec
    if not spec.secured:
        return []
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    of_members = _pods(members or names.selector("zookeeper"))
    of_brokers = _pods(brokers or names.selector("broker"))
    operator = _operator(operator_namespace)
    clients = [each.port for each in spec.listeners]
    policies: dict[str, tuple[Peer, list[Document]]] = {
        "zookeeper": (
            of_members,
            [
                _rule([client_port(cluster.body)], [of_brokers, of_members, operator]),
                _rule([PEER_PORT, ELECTION_PORT], [of_members]),
                *_of_sidecars(spec.zookeeper.template),
            ],
        ),
        "broker": (
            of_brokers,
            [
                _rule([REPLICATION_PORT], [of_brokers, operator]),
                _rule([*clients, ADMIN_PORT], []),
                *_of_sidecars(spec.brokers.template),
            ],
        ),
    }
    return [
        objects.owned(
            _policy(cluster, names, component, selected, rules),
            owner=cluster.meta,
            kind=cluster.kind,
        )
        for component, (selected, rules) in policies.items()
    ]


def _policy(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    component: str,
    selected: Peer,
    rules: list[Document],
) -> Document:
    body = objects.document(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        names.network(component),
        owner=cluster.meta,
        labels=names.labels(component),
    )
    body["spec"] = {
        "podSelector": selected["podSelector"],
        "policyTypes": ["Ingress"],
        "ingress": rules,
    }
    return body


def _pods(selector: Mapping[str, str]) -> Peer:
    """Pods of the cluster's own namespace."""
    return {"podSelector": {"matchLabels": dict(selector)}}


def _operator(namespace: str) -> Peer:
    """The operator's pods, in its namespace alone: any user may give a pod these labels."""
    return {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "barnabas-operator"}},
    }


def _of_sidecars(template: PodTemplate) -> list[Document]:
    """The ports that a resource's own containers declare, from everywhere; none is the operator's.

    What the API server will refuse in a container is left to it.
    """
    ports = [
        {"port": number, "protocol": port.get("protocol", "TCP")}
        for sidecar in template.sidecars
        for port in pods.objects_in(sidecar.get("ports"))
        if isinstance(number := port.get("containerPort"), int)
    ]
    return [{"ports": ports}] if ports else []


def _rule(ports: Sequence[int], peers: list[Peer]) -> Document:
    """Connections to these ports, from these peers; from everywhere where there are none."""
    rule: Document = {"ports": [{"port": port, "protocol": "TCP"} for port in ports]}
    if peers:
        rule["from"] = peers
    return rule
