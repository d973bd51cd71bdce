"""The operator installed by the plain manifest instead of Helm, and the end of the quickstart."""

from __future__ import annotations

from typing import Final

from e2e import images
from e2e.cluster import Cluster
from e2e.commands import ROOT
from e2e.kafka import Place, Record
from e2e.load import Load
from e2e.quickstart import FILE, MAIN, RELEASE, Quickstart
from tests.waiting import SETTLE, seconds

MANIFEST: Final = "manifests/install.yaml"
MANAGED: Final = "barnabas.io/cluster=quickstart"


def test_the_manifest_takes_over_what_helm_had_installed(
    quickstart: Quickstart, sent: dict[Place, Record]
) -> None:
    """Clusters go on while their operator is replaced: the same pods, the same records.

    The new operator brings other images than the cluster runs. Nothing is rolled to them, and a
    producer notices nothing.
    """
    cluster = quickstart.cluster
    before = pod_identities(cluster)
    text = (ROOT / MANIFEST).read_text("utf-8")
    for target in ("broker", "zookeeper"):
        text = text.replace(f"value: {images.name(target)}", f"value: barnabas-{target}:next")
    with Load(quickstart.client(), "packages") as load:
        limit = f"{seconds(SETTLE):.0f}s"
        cluster.helm("uninstall", RELEASE, "-n", MAIN, "--wait", "--timeout", limit)
        roles = cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
        assert RELEASE not in roles
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
        cluster.wait_rolled_out(RELEASE, namespace=MAIN)
        cluster.kubectl("delete", "configmap/quickstart-zookeeper", "-n", MAIN)
        cluster.wait_for(
            "the ConfigMap that the new operator has created",
            lambda: cluster.get("configmap", "quickstart-zookeeper", namespace=MAIN),
            namespaces=(MAIN,),
        )
        cluster.wait_for(
            "the new images in status.updateAvailable",
            lambda: cluster.get("kafkacluster", "quickstart", namespace=MAIN) or {},
            until=lambda found: (
                "barnabas-broker:next" in found["status"].get("updateAvailable", "")
            ),
            namespaces=(MAIN,),
        )
        quickstart.wait_ready("kafkacluster/quickstart")
    assert pod_identities(cluster) == before
    assert load.failures == []
    assert quickstart.read("packages") == {**sent, **load.acknowledged}


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
