"""Which brokers advertise other addresses than they should: they read them when they start.

An address that Kubernetes gives may come or change while a broker runs. Brokers say themselves what
they advertise, so that only those that it concerns are restarted, by the rules of a roll. One that
has started since the addresses were written is not restarted for them again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import FIELD_MANAGER, ClusterNames
from barnabas_operator.plan.rolling import READDRESSED, PodView
from barnabas_operator.resources.brokers import advertised_listeners
from barnabas_operator.resources.listeners import Objects, needs_files

_PLACE: Final = re.compile(r"\{(?:(\d+)\+)?(POD_INDEX|POD_NAME|HOST_IP)\}")


def node_ports(cluster: Resource[KafkaCluster], objects: Objects) -> dict[str, int]:
    """The ports of the nodes that broker 0's Service has, by listener."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    service = objects.get(("Service", names.external(0)))
    listed = service["spec"].get("ports", ()) if service else ()
    # Another program may have taken the names away; its change is taken back.
    given = {port.get("name", ""): port["nodePort"] for port in listed if port.get("nodePort")}
    # What the resource says counts before what the Service still has.
    for each in cluster.body.spec.listeners:
        if each.node_port is not None:
            given[each.name] = each.node_port
    return given


def readdressed(
    cluster: Resource[KafkaCluster],
    objects: Objects,
    pods: Sequence[PodView],
    advertised: Mapping[int, str],
) -> list[PodView]:
    """The pods, with a mark on those that advertise too little or something else."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    spec, ports = cluster.body.spec, node_ports(cluster, objects)
    known = all(
        each.type is not ListenerType.NODEPORT or each.name in ports for each in spec.listeners
    )
    if not (needs_files(spec.listeners) and known):
        return list(pods)
    written = _written_at(objects.get(("ConfigMap", names.addresses)))
    marked = []
    for pod in pods:
        served = advertised.get(pod.ordinal)
        text = advertised_listeners(cluster, names, ports, broker=pod.ordinal, found=objects)
        wanted = set(_filled(text, pod).split(","))
        missing = (
            served is not None and bool(pod.node_address) and not wanted <= {*served.split(",")}
        )
        due = missing and bool(written) and pod.created < written
        marked.append(replace(pod, restart=pod.restart or READDRESSED) if due else pod)
    return marked


def _filled(text: str, pod: PodView) -> str:
    values = {"POD_NAME": pod.name, "POD_INDEX": str(pod.ordinal), "HOST_IP": pod.node_address}

    def fill(place: re.Match[str]) -> str:
        first, name = place.groups()
        return values[name] if first is None else str(int(first) + pod.ordinal)

    return _PLACE.sub(fill, text)


def _written_at(config_map: Mapping[str, Any] | None) -> str:
    """When the addresses were last changed, RFC 3339; empty if they were not written yet."""
    entries = config_map["metadata"].get("managedFields") or () if config_map else ()
    times = (
        each.get("time") or ""
        for each in entries
        if each.get("manager") == FIELD_MANAGER and each.get("operation") == "Apply"
    )
    return max(times, default="")
