"""What to do next for a KafkaCluster: one look, one list of steps.

The order is that of a reconcile: the ensemble before the brokers, Services before the workloads
that are told their ports, a roll only when everything else is as it should be, and of pods at most
one. The broker StatefulSet needs the ports of the nodes: while Kubernetes has not chosen them, it
waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster, ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.claims import growth, with_present_templates
from barnabas_operator.plan.drift import drift
from barnabas_operator.plan.rolling import PodView, SetView, next_to_roll, outdated
from barnabas_operator.plan.steps import Apply, GrowClaim, Step, TellRack
from barnabas_operator.resources.brokers import broker_services, broker_workload, claim_size
from barnabas_operator.resources.zookeeper import zookeeper_objects

Object = Mapping[str, Any]

COMPONENTS: Final = ("zookeeper", "broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images that pods are made of."""

    broker: str
    zookeeper: str
    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What there is of a cluster: objects by (kind, name), pods and claims by component."""

    objects: Mapping[tuple[str, str], Object]
    pods: Mapping[str, Sequence[PodView]]
    claims: Mapping[str, Sequence[Object]]
    # The rack of each node on which a broker waits to be told its own; empty where it has none.
    racks: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""

    def stateful_set(self, name: str) -> SetView | None:
        """The StatefulSet of this name, as far as a roll needs to know it."""
        found = self.objects.get(("StatefulSet", name))
        return SetView.of(found) if found is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in order; what has to come by itself; what a user should know."""

    steps: tuple[Step, ...]
    waiting: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def plan_cluster(cluster: Resource[KafkaCluster], observed: Observed, *, images: Images) -> Plan:
    """What to do now."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    wanted = [*zookeeper_objects(cluster, image=images.zookeeper), *broker_services(cluster)]
    waiting: list[str] = []
    ports = node_ports(cluster, observed)
    unknown = [
        each.name
        for each in cluster.body.spec.listeners
        if each.type is ListenerType.NODEPORT and each.name not in ports and each.node_port is None
    ]
    if unknown:
        waiting.append(f"Kubernetes has not chosen a port for {', '.join(unknown)} yet")
    else:
        wanted += broker_workload(cluster, image=images.broker, node_ports=ports)
    steps: list[Step] = []
    for body in wanted:
        found = observed.objects.get((body["kind"], body["metadata"]["name"]))
        possible = with_present_templates(body, found)
        if reason := drift(possible, found):
            steps.append(Apply(body=possible, reason=reason))
    grown, warnings = _claims(cluster, observed)
    steps += grown
    told, homeless = _racks(cluster, observed)
    steps += told
    waiting += homeless
    rolled = False
    for component, name in zip(COMPONENTS, (names.zookeeper, names.broker), strict=True):
        seen = observed.stateful_set(name)
        if seen is None:
            waiting.append(f"{component}: starting")
            continue
        pods = observed.pods.get(component, ())
        # One destructive act in a pass, and none while the templates themselves are changing.
        if not steps and not rolled and (victim := next_to_roll(pods, seen)) is not None:
            steps.append(victim)
            rolled = True
        waiting += _missing(component, pods, seen)
    return Plan(steps=tuple(steps), waiting=tuple(waiting), warnings=tuple(warnings))


def node_ports(cluster: Resource[KafkaCluster], observed: Observed) -> dict[str, int]:
    """The ports of the nodes that broker 0's Service has, by listener."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    service = observed.objects.get(("Service", names.external(0)))
    listed = service["spec"].get("ports", ()) if service else ()
    given = {port["name"]: port["nodePort"] for port in listed if port.get("nodePort")}
    # What the resource says counts before what the Service still has.
    for each in cluster.body.spec.listeners:
        if each.node_port is not None:
            given[each.name] = each.node_port
    return given


def _missing(component: str, pods: Sequence[PodView], seen: SetView) -> list[str]:
    ready = sum(pod.ready and not pod.leaving for pod in pods)
    told = []
    if ready < seen.replicas:
        told.append(f"{component}: {ready} of {seen.replicas} pods ready")
    if old := outdated(pods, seen):
        told.append(f"{component}: {len(old)} pods to be made anew")
    if not seen.current:
        told.append(f"{component}: its StatefulSet changed")
    return told


def _racks(cluster: Resource[KafkaCluster], observed: Observed) -> tuple[list[TellRack], list[str]]:
    """Racks to tell the brokers, and why some cannot be told."""
    rack = cluster.body.spec.brokers.rack
    if rack is None:
        return [], []
    steps = []
    waiting = [observed.trouble] if observed.trouble else []
    for pod in observed.pods.get("broker", ()):
        if pod.rack or pod.node not in observed.racks:
            continue
        if found := observed.racks[pod.node]:
            steps.append(TellRack(name=pod.name, rack=found))
        else:
            text = f"node {pod.node} has no label {rack.topology_key}; label it"
            waiting.append(f"{pod.name} waits for its rack: {text}")
    return steps, waiting


def _claims(
    cluster: Resource[KafkaCluster], observed: Observed
) -> tuple[list[GrowClaim], list[str]]:
    spec = cluster.body.spec
    sizes = {"zookeeper": spec.zookeeper.storage.size, "broker": claim_size(cluster.body)}
    steps: list[GrowClaim] = []
    warnings: list[str] = []
    for component, size in sizes.items():
        grown, kept = growth(observed.claims.get(component, ()), size)
        steps += grown
        warnings += kept
    return steps, warnings
