"""The operator, installed by Helm."""

from __future__ import annotations

from e2e.cluster import Cluster
from e2e.commands import CommandError
from e2e.quickstart import BRIEF, MAIN, RELEASE


def test_helm_installs_definitions_and_a_ready_operator(operator: Cluster) -> None:
    """After `helm install --wait` the three kinds are established and the operator is available."""
    for plural in ("kafkaclusters", "kafkatopics", "kafkausers", "kafkapipelines"):
        crd = f"crd/{plural}.barnabas.io"
        operator.wait_for_condition(crd, "Established", namespace=MAIN)
    operator.wait_rolled_out(RELEASE, namespace=MAIN)


def test_the_operator_has_a_priority_and_a_budget(operator: Cluster) -> None:
    """Its pod is not the first to be preempted, and a drain of its node may go on."""
    (pod,) = operator.list("pod", namespace=MAIN, selector=f"app.kubernetes.io/instance={RELEASE}")
    assert pod["spec"]["priority"] > 0
    path = "jsonpath={.status.disruptionsAllowed}"
    operator.wait_for(
        "a budget that allows an eviction",
        lambda: operator.kubectl("get", "pdb", RELEASE, "-n", MAIN, "-o", path),
        until=lambda allowed: allowed == "1",
        namespaces=(MAIN,),
    )


def test_the_operator_may_do_nothing_outside_its_namespaces(operator: Cluster) -> None:
    """Its account has no right on the whole cluster but to read two definitions."""
    account = f"--as=system:serviceaccount:{MAIN}:{RELEASE}"

    def may(*asked: str) -> bool:
        try:
            operator.kubectl("auth", "can-i", *asked, account)
        except CommandError:
            return False
        return True

    assert may("create", "statefulsets", "-n", MAIN)
    assert may("create", "statefulsets", "-n", BRIEF)
    assert may("get", "customresourcedefinitions/kafkatopics.barnabas.io")
    for asked in (
        ("list", "statefulsets", "-A"),
        ("create", "statefulsets", "-n", "default"),
        ("list", "secrets", "-n", MAIN),
        ("watch", "secrets", "-n", MAIN),
        ("delete", "secrets", "-n", MAIN),
        ("get", "secrets", "-n", "default"),
        ("create", "pods/exec", "-n", MAIN),
        ("patch", "customresourcedefinitions"),
        ("list", "customresourcedefinitions"),
    ):
        assert not may(*asked), asked
