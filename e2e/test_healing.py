"""What breaks and what is changed by hand becomes what the resources say, and no record is lost."""

from __future__ import annotations

import json
from typing import Any, Final

from e2e.cluster import Cluster, Json
from e2e.kafka import Place, Record
from e2e.quickstart import MAIN, RELEASE, Quickstart
from e2e.wait import wait_for

# The operator looks at everything every 30 s, besides what it is told.
CORRECTED_WITHIN_S: Final = 150.0
BACK_WITHIN_S: Final = 180


def delete_pod(cluster: Cluster, name: str) -> None:
    """Delete a pod and wait until another one of its name is Ready."""
    before = cluster.get("pod", name, namespace=MAIN)
    assert before is not None
    cluster.kubectl("delete", f"pod/{name}", "-n", MAIN, "--wait=true", "--timeout=150s")

    def is_back() -> bool:
        pod = cluster.get("pod", name, namespace=MAIN)
        return pod is not None and pod["metadata"]["uid"] != before["metadata"]["uid"]

    wait_for(f"{name} is there again", is_back, within_s=150)
    ready = f"--timeout={BACK_WITHIN_S}s"
    cluster.kubectl(
        "wait", f"pod/{name}", "-n", MAIN, "--for=condition=Ready", ready,
        timeout_s=BACK_WITHIN_S + 30,
    )  # fmt: skip


def test_a_deleted_broker_comes_back_with_its_records(
    quickstart: Quickstart, sent: dict[Place, Record]
) -> None:
    """The new pod has the old one's id, address and disk."""
    delete_pod(quickstart.cluster, "quickstart-broker-0")
    quickstart.wait_ready("kafkacluster/quickstart")
    assert quickstart.read("packages") == sent
    quickstart.send("files", [(b"after", b"the broker's pod was deleted")])


def test_a_deleted_zookeeper_comes_back_with_the_topics(
    quickstart: Quickstart, sent: dict[Place, Record]
) -> None:
    """The broker finds its session or makes another; records stay, and topics can be made."""
    delete_pod(quickstart.cluster, "quickstart-zookeeper-0")
    quickstart.wait_ready("kafkacluster/quickstart")
    assert quickstart.read("packages") == sent
    topic = json.dumps(
        {
            "apiVersion": "barnabas.io/v1alpha1",
            "kind": "KafkaTopic",
            "metadata": {"name": "after-zookeeper"},
            "spec": {"cluster": "quickstart"},
        }
    )
    quickstart.cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=topic)
    quickstart.wait_ready("kafkatopic/after-zookeeper", within_s=150)


def test_a_deleted_pipeline_goes_on_where_it_was(
    quickstart: Quickstart, sent: dict[Place, Record], tmp_path: Any
) -> None:
    """Records that came while it was away are in the files once, as are those from before."""
    delete_pod(quickstart.cluster, "packages-to-parquet-pipeline-0")
    more = quickstart.send("packages", [(b"away %d" % n, b"sent meanwhile") for n in range(50)])
    quickstart.wait_ready("kafkapipeline/packages-to-parquet")
    quickstart.wait_until_landed(len(more))
    assert quickstart.landed(tmp_path) == {**sent, **more}


def test_a_changed_service_is_put_back(quickstart: Quickstart) -> None:
    """A selector that leads nowhere, and a Service that is gone, are mended."""
    cluster = quickstart.cluster
    wanted = _spec(cluster, "service", "quickstart-bootstrap")
    patch = json.dumps({"spec": {"selector": {"app.kubernetes.io/component": "nothing"}}})
    cluster.kubectl("patch", "service/quickstart-bootstrap", "-n", MAIN, "-p", patch)
    cluster.kubectl("delete", "service/quickstart-broker-0-external", "-n", MAIN)

    def is_mended() -> bool:
        external = cluster.get("service", "quickstart-broker-0-external", namespace=MAIN)
        bootstrap = _spec(cluster, "service", "quickstart-bootstrap")
        return external is not None and bootstrap["selector"] == wanted["selector"]

    wait_for("the Services are as they were", is_mended, within_s=CORRECTED_WITHIN_S)
    quickstart.send("files", [(b"after", b"the services were mended")])


def test_a_changed_config_map_is_put_back(quickstart: Quickstart) -> None:
    """The broker's configuration is the resource's, whoever edits its ConfigMap."""
    cluster = quickstart.cluster
    wanted = _config(cluster)
    patch = json.dumps({"data": {"server.properties": "log.dirs=/nowhere\n"}})
    cluster.kubectl("patch", "configmap/quickstart-broker", "-n", MAIN, "-p", patch)
    wait_for(
        "the ConfigMap is as it was",
        lambda: _config(cluster) == wanted,
        within_s=CORRECTED_WITHIN_S,
    )


def test_the_operator_goes_on_after_a_restart(quickstart: Quickstart) -> None:
    """While it is away brokers serve; when it is back it does what was asked meanwhile."""
    cluster = quickstart.cluster
    cluster.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=0")
    pods = ("pods", "-n", MAIN, "-l", f"app.kubernetes.io/name={RELEASE}")
    cluster.kubectl("wait", *pods, "--for=delete", "--timeout=120s")
    patch = json.dumps({"spec": {"partitions": 4}})
    cluster.kubectl("patch", "kafkatopic/files", "-n", MAIN, "--type=merge", "-p", patch)
    quickstart.send("files", [(b"without", b"an operator")])
    cluster.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=1")
    wait_for(
        "the topic has grown",
        lambda: quickstart.partitions("files") == 4,
        within_s=CORRECTED_WITHIN_S,
    )


def _spec(cluster: Cluster, kind: str, name: str) -> Json:
    found = cluster.get(kind, name, namespace=MAIN)
    assert found is not None
    spec: Json = found["spec"]
    return spec


def _config(cluster: Cluster) -> str:
    found = cluster.get("configmap", "quickstart-broker", namespace=MAIN)
    assert found is not None
    return str(found["data"]["server.properties"])
