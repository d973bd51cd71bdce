"""What the operator's metrics say of a cluster."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from e2e.cluster import Cluster
from e2e.quickstart import MAIN, RELEASE


def figures(cluster: Cluster, of: str) -> tuple[float, float]:
    """The reconciliations of a KafkaCluster, and the steps on the API server, by the operator."""
    selector = f"app.kubernetes.io/name={RELEASE}"
    (operator,) = cluster.list("pod", namespace=MAIN, selector=selector)
    pod = f"/api/v1/namespaces/{MAIN}/pods/{operator['metadata']['name']}"
    text = cluster.kubectl("get", "--raw", f"{pod}:8080/proxy/metrics")
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    reconciliations = sum(
        each.value
        for each in samples
        if each.name == "barnabas_operator_reconciliations_total" and each.labels["cluster"] == of
    )
    steps = [each.value for each in samples if each.name == "barnabas_operator_steps_total"]
    return reconciliations, sum(steps)


def wait_for_reconciliations(cluster: Cluster, of: str, count: int = 2) -> None:
    """Until so many have ended: the first may have begun before what is now."""
    before, _ = figures(cluster, of)
    cluster.wait_for(
        f"{count} more reconciliations of {of}",
        lambda: figures(cluster, of)[0],
        until=lambda ended: ended >= before + count,
        namespaces=(MAIN,),
    )
