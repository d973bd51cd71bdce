"""Removal leaves what is meant to stay, and nothing that waits for an operator which is gone."""

from __future__ import annotations

from typing import Final

from e2e.cluster import Cluster
from e2e.quickstart import BRIEF, FIXTURES, MAIN, RELEASE
from e2e.wait import wait_for

OWNED: Final = "statefulsets,pods,services,configmaps,poddisruptionbudgets,persistentvolumeclaims"
OURS: Final = "app.kubernetes.io/instance=brief"
FILE: Final = str(FIXTURES / "brief.yaml")


def test_a_cluster_goes_with_all_that_is_its(operator: Cluster) -> None:
    """With `deletionPolicy: Delete` nothing is left of a deleted cluster, its claims included."""
    operator.kubectl("apply", "-n", BRIEF, "-f", FILE)
    wait = ("--for=condition=Ready", "--timeout=240s")
    for resource in ("kafkacluster/brief", "kafkatopic/brief-topic"):
        operator.kubectl("wait", "-n", BRIEF, resource, *wait, timeout_s=270)
    assert operator.list(OWNED, namespace=BRIEF, selector=OURS)
    operator.kubectl("delete", "-n", BRIEF, "-f", FILE, "--timeout=120s")
    wait_for(
        "nothing of the cluster is left",
        lambda: not operator.list(OWNED, namespace=BRIEF, selector=OURS),
        within_s=180,
        told=lambda: operator.kubectl("get", OWNED, "-n", BRIEF, "-l", OURS),
    )


def test_a_namespace_goes_when_the_operator_is_gone(operator: Cluster) -> None:
    """No finalizer keeps resources, and with them the namespace, from being deleted."""
    operator.kubectl("apply", "-n", BRIEF, "-f", FILE)
    wait_for(
        "the operator has made the cluster's objects",
        lambda: operator.get("statefulset", "brief-broker", namespace=BRIEF),
        within_s=150,
    )
    operator.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=0")
    pods = ("pods", "-n", MAIN, "-l", f"app.kubernetes.io/name={RELEASE}")
    operator.kubectl("wait", *pods, "--for=delete", "--timeout=120s")
    operator.kubectl("delete", "namespace", BRIEF, "--timeout=180s", timeout_s=200)
    assert BRIEF not in operator.kubectl("get", "namespaces", "-o", "name")
