"""A KafkaCluster: look at its objects, take the plan's steps, ask the brokers, tell the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_operator.api.clusters import (
    ClusterStatus,
    KafkaCluster,
    Listener,
    ListenerStatus,
    ListenerType,
    ReplicaStatus,
    StorageStatus,
)
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import BrokersError, ClusterView
from barnabas_operator.kube import (
    BUDGETS,
    CLAIMS,
    CONFIG_MAPS,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    KubeError,
)
from barnabas_operator.names import INSTANCE, ClusterNames
from barnabas_operator.plan.clusters import COMPONENTS, Observed, Plan, node_ports, plan_cluster
from barnabas_operator.plan.rolling import PodView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.deeds import take
from barnabas_operator.reconcile.rolls import hold_back
from barnabas_operator.reconcile.status import write_status
from barnabas_operator.resources.brokers import claim_size, storage_estimate
from barnabas_operator.resources.config import inter_broker_listener

Cluster = Resource[KafkaCluster]


def reconcile_cluster(cluster: Cluster, context: Context) -> ClusterStatus:
    """One pass; returns the status that was told. Raises KubeError."""
    if refusal := refuse(cluster.body):
        verdict = Verdict(ready=False, reason="InvalidSpec", message=refusal, stalled=True)
        return write_status(cluster, cluster.body.status, verdict, context)
    observed = observe(cluster, context)
    plan = hold_back(plan_cluster(cluster, observed, images=context.images), observed, context)
    failed = take(plan.steps, cluster.meta, context)
    view, trouble = ask_brokers(cluster, observed, context)
    verdict = judge(plan, failed=failed, answered=view is not None, trouble=trouble)
    status = status_of(cluster, observed, view)
    return write_status(cluster, status, verdict, context)


def refuse(body: KafkaCluster) -> str:
    """What is wrong with a cluster's settings, as the brokers would find it; empty if nothing."""
    problems = BrokerSettings.problems(body.spec.config, strict=True)
    return "; ".join(f"spec.config.{problem}" for problem in problems)


def observe(cluster: Cluster, context: Context) -> Observed:
    """Look at everything that belongs to the cluster."""
    kube, namespace = context.kube, cluster.meta.namespace
    labels = {INSTANCE: cluster.meta.name}
    objects: dict[tuple[str, str], Mapping[str, Any]] = {}
    for kind in (STATEFUL_SETS, SERVICES, CONFIG_MAPS, BUDGETS):
        for found in kube.list(kind, namespace, labels):
            objects[found["kind"], found["metadata"]["name"]] = found
    names = ClusterNames(cluster.meta.name, namespace)
    pods, claims = {}, {}
    for component in COMPONENTS:
        selector = names.selector(component)
        owner = objects.get(("StatefulSet", f"{cluster.meta.name}-{component}"))
        pods[component] = [
            PodView.of(pod)
            for pod in kube.list(PODS, namespace, selector)
            if owner is not None and _is_owned(pod, owner)
        ]
        claims[component] = kube.list(CLAIMS, namespace, selector)
    racks, trouble = look_for_racks(cluster, pods["broker"], context)
    return Observed(objects=objects, pods=pods, claims=claims, racks=racks, trouble=trouble)


def look_for_racks(
    cluster: Cluster, pods: Sequence[PodView], context: Context
) -> tuple[Mapping[str, str], str]:
    """The rack of each node on which a broker waits for it, and why it cannot be found out."""
    rack = cluster.body.spec.brokers.rack
    if rack is None:
        return {}, ""
    found: dict[str, str] = {}
    for node in {pod.node for pod in pods if pod.node and not pod.rack}:
        try:
            body = context.kube.get(NODES, "", node)
        except KubeError as error:
            if error.status != 403:
                raise
            remedy = "install the operator's chart with racks=true"
            return {}, f"brokers wait for their racks: the operator may not get nodes; {remedy}"
        labels = (body or {}).get("metadata", {}).get("labels") or {}
        found[node] = labels.get(rack.topology_key, "")
    return found, ""


def _is_owned(pod: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Whose a pod is, its owner's identity decides; labels can be given to anything."""
    references = pod["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == owner["metadata"]["uid"] for each in references)


def ask_brokers(
    cluster: Cluster, observed: Observed, context: Context
) -> tuple[ClusterView | None, str]:
    """What the cluster says of itself, and why it does not; nobody is asked without a ready pod."""
    if not any(pod.ready for pod in observed.pods["broker"]):
        return None, ""
    try:
        return context.brokers(bootstrap_servers(cluster)).describe(), ""
    except BrokersError as error:
        return None, str(error)


def bootstrap_servers(cluster: Cluster) -> str:
    """Where the operator itself and pipelines reach the cluster."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    return names.bootstrap_server(inter_broker_listener(cluster.body.spec.listeners).port)


def judge(plan: Plan, *, failed: str, answered: bool, trouble: str) -> Verdict:
    """How the cluster fares."""
    warnings = plan.warnings
    if failed:
        return Verdict(
            ready=answered, reason="Refused", message=failed, stalled=True, warnings=warnings
        )
    if plan.waiting or plan.steps:
        waiting = "; ".join(plan.waiting) or "changes were applied"
        reason = "Updating" if answered else "Starting"
        return Verdict(
            ready=answered and not plan.waiting,
            reason=reason,
            message=waiting,
            settled=False,
            warnings=warnings,
        )
    if not answered:
        message = trouble or "no broker answers yet"
        return Verdict(
            ready=False, reason="Unreachable", message=message, settled=False, warnings=warnings
        )
    return Verdict(ready=True, reason="Ready", message="all pods are ready", warnings=warnings)


def status_of(cluster: Cluster, observed: Observed, view: ClusterView | None) -> ClusterStatus:
    """The status, without conditions."""
    before, spec = cluster.body.status, cluster.body.spec
    reckoned = storage_estimate(cluster.body)
    ready = {component: sum(pod.ready for pod in pods) for component, pods in observed.pods.items()}
    return ClusterStatus(
        cluster_id=view.cluster_id if view else before.cluster_id,
        listeners=listeners(cluster, observed),
        brokers=ReplicaStatus(replicas=spec.brokers.replicas, ready=ready["broker"]),
        zookeeper=ReplicaStatus(replicas=spec.zookeeper.replicas, ready=ready["zookeeper"]),
        storage=StorageStatus(
            size=claim_size(cluster.body), arithmetic=reckoned.lines if reckoned else ()
        ),
    )


def listeners(cluster: Cluster, observed: Observed) -> tuple[ListenerStatus, ...]:
    """Where clients reach the brokers, as far as it is known."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    ports = node_ports(cluster, observed)
    told = []
    for each in cluster.body.spec.listeners:
        if each.type is ListenerType.INTERNAL:
            servers = names.bootstrap_server(each.port)
        else:
            servers = _on_nodes(each, ports.get(each.name), observed.pods["broker"])
        told.append(ListenerStatus(name=each.name, type=each.type.value, bootstrap_servers=servers))
    return tuple(told)


def _on_nodes(listener: Listener, first: int | None, pods: Sequence[PodView]) -> str:
    """Where each broker is reached by the address of its node, as far as it is known."""
    if first is None:
        return ""
    hosts = [(pod.ordinal, listener.advertised_host or pod.node_address) for pod in pods]
    return ",".join(f"{host}:{first + ordinal}" for ordinal, host in sorted(hosts) if host)
