"""Clusters whose pods are to be replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
THREE = {
    "zookeeper": {"replicas": 3, "storage": {"size": "1Gi"}},
    "brokers": {"replicas": 3, "storage": {"size": "1Gi"}},
}
VIEW = ClusterView(cluster_id="an-id", broker_ids=(0, 1, 2), controller_id=2)
MODES = {"10.0.0.0": "follower", "10.0.0.1": "leader", "10.0.0.2": "follower"}
FIRST = "evict Pod quickstart-zookeeper-2"


def settled() -> tuple[MemoryKube, MemoryBrokers, Context]:
    """A cluster of three and three in which nothing is to be done."""
    kube, brokers = MemoryKube(examples.cluster(**THREE)), MemoryBrokers(view=VIEW)
    context = replace(context_on(kube, brokers), ensemble_mode=lambda host, _: MODES[host])
    for _ in range(3):
        reconcile(KEY, context)
        kube.settle()
    return kube, brokers, context


def put(kube: MemoryKube, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    """A user applies the KafkaCluster."""
    document = examples.cluster(**{**THREE, **spec})
    document["metadata"]["annotations"] = annotations or {}
    kube.put(document)


def changed(
    annotations: dict[str, str] | None = None, **spec: Any
) -> tuple[MemoryKube, MemoryBrokers, Context]:
    """A cluster whose pods all have another template than their StatefulSets."""
    kube, brokers, context = settled()
    images = {"broker": "b:2", "zookeeper": "z:2"}
    put(kube, annotations, images=images, config={"num.partitions": "3"}, **spec)
    reconcile(KEY, context)
    kube.settle(pods=False)
    kube.writes.clear()
    return kube, brokers, context


def roll(kube: MemoryKube) -> dict[str, Any]:
    """The plan in the status; empty if there is none."""
    found = kube.find("KafkaCluster", "quickstart")["status"].get("roll")
    return found if isinstance(found, dict) else {}
