"""Removal leaves what is meant to stay, and nothing that waits for an operator which is gone."""

from __future__ import annotations

import json
from typing import Final

from e2e.cluster import Cluster
from e2e.quickstart import BRIEF, FIXTURES, MAIN, RELEASE

OWNED: Final = (
    "statefulsets,pods,services,configmaps,secrets,networkpolicies,poddisruptionbudgets,"
    "persistentvolumeclaims"
)
OURS: Final = "barnabas.io/cluster=brief"
FILE: Final = str(FIXTURES / "brief.yaml")


def test_a_cluster_goes_with_all_that_is_its(operator: Cluster) -> None:
    """With `deletionPolicy: Delete` nothing is left of a deleted cluster, its claims included."""
    operator.kubectl("apply", "-n", BRIEF, "-f", FILE)
    for resource in ("kafkacluster/brief", "kafkatopic/brief-topic"):
        operator.wait_ready(resource, namespace=BRIEF)
    assert operator.names(OWNED, namespace=BRIEF, selector=OURS)
    operator.delete_objects("-n", BRIEF, "-f", FILE)
    operator.wait_gone(OWNED, namespace=BRIEF, selector=OURS, show=(MAIN,))


def test_a_namespace_goes_when_the_operator_is_gone(operator: Cluster) -> None:
    """No finalizer keeps resources, and with them the namespace, from being deleted."""
    operator.kubectl("apply", "-n", BRIEF, "-f", FILE)
    operator.wait_for(
        "the cluster's objects",
        lambda: operator.get("statefulset", "brief-broker", namespace=BRIEF),
        namespaces=(MAIN, BRIEF),
    )
    operator.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=0")
    operator.wait_gone("pods", namespace=MAIN, selector=f"app.kubernetes.io/name={RELEASE}")
    operator.delete_objects("namespace", BRIEF)
    assert BRIEF not in operator.kubectl("get", "namespaces", "-o", "name")


def test_an_operator_starts_without_a_namespace_that_it_watches(operator: Cluster) -> None:
    """The one that went before; resources of the others are served."""
    operator.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=1")
    operator.wait_rolled_out(RELEASE, namespace=MAIN)
    topic = {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": "astray"},
        "spec": {"cluster": "of-nobody"},
    }
    operator.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(topic))
    operator.wait_for(
        "the condition of a topic without a cluster",
        lambda: operator.get("kafkatopic", "astray", namespace=MAIN) or {},
        until=lambda found: "of-nobody" in str(found.get("status", {}).get("conditions")),
        namespaces=(MAIN,),
    )
    operator.delete_objects("kafkatopic/astray", "-n", MAIN)
