"""Removal leaves what is meant to stay, and nothing that waits for an operator which is gone."""

from __future__ import annotations

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
