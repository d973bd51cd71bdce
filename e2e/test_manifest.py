"""The operator installed by the plain manifest instead of Helm, and the end of the quickstart."""

from __future__ import annotations

from typing import Final

from e2e.cluster import Cluster
from e2e.kafka import Place, Record
from e2e.quickstart import FILE, MAIN, RELEASE, Quickstart
from tests.waiting import SETTLE, seconds

MANIFEST: Final = "manifests/install.yaml"
MANAGED: Final = "barnabas.io/cluster=quickstart"


def test_the_manifest_takes_over_what_helm_had_installed(
    quickstart: Quickstart, sent: dict[Place, Record]
) -> None:
    """Clusters go on while their operator is replaced: the same pods, the same records."""
    cluster = quickstart.cluster
    before = pod_identities(cluster)
    cluster.helm("uninstall", RELEASE, "-n", MAIN, "--wait", "--timeout", f"{seconds(SETTLE):.0f}s")
    roles = cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert RELEASE not in roles
    assert quickstart.read("packages") == sent
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", MANIFEST)
    cluster.wait_rolled_out(RELEASE, namespace=MAIN)
    cluster.kubectl("delete", "configmap/quickstart-zookeeper", "-n", MAIN)
    cluster.wait_for(
        "the ConfigMap that the new operator has created",
        lambda: cluster.get("configmap", "quickstart-zookeeper", namespace=MAIN),
        namespaces=(MAIN,),
    )
    quickstart.wait_ready("kafkacluster/quickstart")
    assert pod_identities(cluster) == before


def test_the_quickstart_is_removed_but_for_its_claims(quickstart: Quickstart) -> None:
    """After `kubectl delete -f` no pod is left; the claims stay, for `Retain` is the default."""
    cluster = quickstart.cluster
    cluster.delete_objects("-n", MAIN, "-f", FILE)
    cluster.delete_objects("kafkatopics", "--all", "-n", MAIN)
    kinds = "statefulsets,pods,services,configmaps,poddisruptionbudgets"
    cluster.wait_gone(kinds, namespace=MAIN, selector=MANAGED)
    claims = {each["metadata"]["name"] for each in cluster.list("pvc", namespace=MAIN)}
    assert claims >= {"data-quickstart-broker-0", "data-quickstart-zookeeper-0"}


def test_the_manifest_is_removed_without_a_trace(kubernetes: Cluster) -> None:
    """`kubectl delete -f manifests/install.yaml` takes definitions, rights and namespace away."""
    kubernetes.delete_objects("-f", MANIFEST)
    assert "barnabas.io" not in kubernetes.kubectl("get", "crds", "-o", "name")
    namespaces = kubernetes.kubectl("get", "namespaces", "-o", "name").split()
    assert f"namespace/{MAIN}" not in namespaces


def pod_identities(cluster: Cluster) -> dict[str, str]:
    """The uid of each pod of the quickstart."""
    pods = cluster.list("pod", namespace=MAIN, selector=MANAGED)
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}
