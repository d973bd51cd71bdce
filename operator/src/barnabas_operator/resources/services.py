"""Services and disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas_operator.api.reading import Metadata
from barnabas_operator.resources.objects import Document, document


def headless(
    name: str,
    *,
    owner: Metadata,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    ports: Mapping[str, int],
) -> Document:
    """A Service that gives each pod a name, ready or not: to be ready, peers must meet first."""
    service = document("v1", "Service", name, owner=owner, labels=labels)
    service["spec"] = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": dict(selector),
        "ports": _ports(ports),
    }
    return service


def cluster_ip(
    name: str,
    *,
    owner: Metadata,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    ports: Mapping[str, int],
) -> Document:
    """A Service with one address for all ready pods."""
    service = document("v1", "Service", name, owner=owner, labels=labels)
    service["spec"] = {
        "type": "ClusterIP",
        "selector": dict(selector),
        "ports": _ports(ports),
    }
    return service


def node_port(
    name: str,
    *,
    owner: Metadata,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    ports: Sequence[tuple[str, int, int | None]],
) -> Document:
    """A Service on a port of the nodes: (name, port, port of the nodes or None) each.

    Only the pod's own node answers (externalTrafficPolicy Local): the advertised address is that
    node's, and a way over another node would cost a hop and hide the client's address.
    """
    service = document("v1", "Service", name, owner=owner, labels=labels)
    written: list[dict[str, Any]] = []
    for port_name, port, on_node in ports:
        each: dict[str, Any] = {
            "name": port_name,
            "port": port,
            "targetPort": port,
            "protocol": "TCP",
        }
        if on_node is not None:
            each["nodePort"] = on_node
        written.append(each)
    service["spec"] = {
        "type": "NodePort",
        "externalTrafficPolicy": "Local",
        "publishNotReadyAddresses": True,
        "selector": dict(selector),
        "ports": written,
    }
    return service


def disruption_budget(
    name: str,
    *,
    owner: Metadata,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    max_unavailable: int = 1,
) -> Document:
    """So many pods at a time may be evicted; those that are not ready at any time."""
    budget = document("policy/v1", "PodDisruptionBudget", name, owner=owner, labels=labels)
    budget["spec"] = {
        "maxUnavailable": max_unavailable,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": dict(selector)},
    }
    return budget


def _ports(ports: Mapping[str, int]) -> list[dict[str, Any]]:
    return [
        {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}
        for name, port in ports.items()
    ]
