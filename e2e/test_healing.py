"""What breaks and what is changed by hand becomes what the resources say, and no record is lost."""

from __future__ import annotations

import json
from typing import Any, Final

from confluent_kafka.admin import ResourceType

from e2e.cluster import Cluster, Json
from e2e.kafka import Place, Record
from e2e.quickstart import MAIN, RELEASE, Quickstart
from tests.waiting import RUN

BROKER: Final = "quickstart-broker-0"


def delete_pod(cluster: Cluster, name: str) -> None:
    """Delete a pod and wait until another one of its name is Ready."""
    before = cluster.get("pod", name, namespace=MAIN)
    assert before is not None
    cluster.delete_objects(f"pod/{name}", "-n", MAIN, "--wait=true")
    cluster.wait_for(
        f"another pod {name} than {before['metadata']['uid']}",
        lambda: (cluster.get("pod", name, namespace=MAIN) or before)["metadata"]["uid"],
        until=lambda uid: uid != before["metadata"]["uid"],
        namespaces=(MAIN,),
    )
    cluster.wait_ready(f"pod/{name}", namespace=MAIN)


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
    quickstart.wait_ready("kafkatopic/after-zookeeper")


def test_a_deleted_pipeline_goes_on_where_it_was(
    quickstart: Quickstart, sent: dict[Place, Record], tmp_path: Any
) -> None:
    """Records that came while it was away are in the files once, as are those from before."""
    delete_pod(quickstart.cluster, "packages-to-parquet-pipeline-0")
    more = quickstart.send("packages", [(b"away %d" % n, b"sent meanwhile") for n in range(50)])
    quickstart.wait_ready("kafkapipeline/packages-to-parquet")
    quickstart.pipeline.wait_until_landed(len(more))
    assert quickstart.pipeline.landed(tmp_path) == {**sent, **more}


def test_a_changed_service_is_put_back(quickstart: Quickstart) -> None:
    """A selector that leads nowhere, and a Service that is gone, are mended."""
    cluster = quickstart.cluster
    wanted = _spec(cluster, "service", "quickstart-bootstrap")
    patch = json.dumps({"spec": {"selector": {"app.kubernetes.io/component": "nothing"}}})
    cluster.kubectl("patch", "service/quickstart-bootstrap", "-n", MAIN, "-p", patch)
    cluster.kubectl("delete", "service/quickstart-broker-0-external", "-n", MAIN)

    cluster.wait_for(
        "the deleted Service",
        lambda: cluster.get("service", "quickstart-broker-0-external", namespace=MAIN),
        namespaces=(MAIN,),
    )
    cluster.wait_for(
        f"the selector {wanted['selector']}",
        lambda: _spec(cluster, "service", "quickstart-bootstrap")["selector"],
        until=lambda selector: selector == wanted["selector"],
        namespaces=(MAIN,),
    )
    quickstart.send("files", [(b"after", b"the services were mended")])


def test_a_changed_config_map_is_put_back(quickstart: Quickstart) -> None:
    """The broker's configuration is the resource's, whoever edits its ConfigMap."""
    cluster = quickstart.cluster
    wanted = _config(cluster)
    patch = json.dumps({"data": {"server.properties": "log.dirs=/nowhere\n"}})
    cluster.kubectl("patch", "configmap/quickstart-broker", "-n", MAIN, "-p", patch)
    cluster.wait_for(
        "the ConfigMap as it was",
        lambda: _config(cluster),
        until=lambda config: config == wanted,
        namespaces=(MAIN,),
    )


def test_a_variable_that_others_add_is_no_drift(quickstart: Quickstart) -> None:
    """As of a webhook: the pod is replaced with it once, and nothing is applied again."""
    cluster = quickstart.cluster
    before = cluster.get("pod", BROKER, namespace=MAIN) or {}
    added = {"name": "broker", "env": [{"name": "INJECTED", "value": "by another"}]}
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [added]}}}})
    manager = "--field-manager=another"
    cluster.kubectl("patch", "statefulset/quickstart-broker", "-n", MAIN, manager, "-p", patch)
    generation = _generation(cluster)

    def variables() -> object:
        pod = cluster.get("pod", BROKER, namespace=MAIN) or before
        if pod["metadata"]["uid"] == before["metadata"]["uid"]:
            return None
        return {each["name"] for each in pod["spec"]["containers"][0]["env"]}

    found = cluster.wait_for(f"another pod {BROKER}", variables, namespaces=(MAIN,), within=RUN)
    assert isinstance(found, set)
    assert "INJECTED" in found
    cluster.wait_ready(f"pod/{BROKER}", namespace=MAIN)
    quickstart.wait_ready("kafkacluster/quickstart")
    assert _generation(cluster) == generation


def test_the_operator_goes_on_after_a_restart(quickstart: Quickstart) -> None:
    """While it is away brokers serve; when it is back it does what was asked meanwhile."""
    cluster = quickstart.cluster
    cluster.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=0")
    cluster.wait_gone("pods", namespace=MAIN, selector=f"app.kubernetes.io/name={RELEASE}")
    patch = json.dumps({"spec": {"partitions": 4}})
    cluster.kubectl("patch", "kafkatopic/files", "-n", MAIN, "--type=merge", "-p", patch)
    quickstart.send("files", [(b"without", b"an operator")])
    cluster.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=1")
    cluster.wait_for(
        "four partitions",
        lambda: quickstart.partitions("files"),
        until=lambda count: count == 4,
        namespaces=(MAIN,),
    )


def test_a_dynamic_setting_is_applied_without_a_roll(quickstart: Quickstart) -> None:
    """In effect on the broker and for its topics, while the same process serves."""
    cluster = quickstart.cluster
    pod = cluster.get("pod", BROKER, namespace=MAIN) or {}
    before = quickstart.setting(ResourceType.BROKER, "0", "log.retention.ms")
    wanted = str(7 * 24 * 3_600_000 + 1)
    assert before != wanted
    patch = json.dumps({"spec": {"config": {"log.retention.ms": wanted}}})
    cluster.kubectl("patch", "kafkacluster/quickstart", "-n", MAIN, "--type=merge", "-p", patch)
    cluster.wait_for(
        "the setting on the broker",
        lambda: quickstart.setting(ResourceType.BROKER, "0", "log.retention.ms"),
        until=lambda found: found == wanted,
        namespaces=(MAIN,),
    )
    assert quickstart.setting(ResourceType.TOPIC, "packages", "retention.ms") == wanted
    quickstart.wait_ready("kafkacluster/quickstart")
    status = (cluster.get("kafkacluster", "quickstart", namespace=MAIN) or {})["status"]
    assert not status.get("roll")
    now = cluster.get("pod", BROKER, namespace=MAIN) or {}
    assert now["metadata"]["uid"] == pod["metadata"]["uid"]
    assert _restarts(now) == _restarts(pod)


def test_a_broker_that_hangs_is_said_to_be_unreachable(
    quickstart: Quickstart, sent: dict[Place, Record]
) -> None:
    """While its pod is still Ready, with the client's words; topics stay as they are."""
    cluster = quickstart.cluster
    pod = cluster.get("pod", BROKER, namespace=MAIN) or {}
    topic = cluster.get("kafkatopic", "packages", namespace=MAIN) or {}
    with cluster.frozen(pod, "broker"):
        found = cluster.wait_for(
            "the reason Unreachable",
            lambda: _ready_condition(cluster),
            until=lambda ready: ready["reason"] == "Unreachable",
            namespaces=(MAIN,),
        )
        assert f"{BROKER}.quickstart-broker-nodes" in found["message"]
        assert cluster.get("kafkatopic", "packages", namespace=MAIN) == topic
    quickstart.wait_until_ready()
    assert quickstart.read("packages") == sent


def _ready_condition(cluster: Cluster) -> Json:
    found = cluster.get("kafkacluster", "quickstart", namespace=MAIN) or {}
    (ready,) = (each for each in found["status"]["conditions"] if each["type"] == "Ready")
    return dict(ready)


def _restarts(pod: Json) -> list[int]:
    return [each["restartCount"] for each in pod["status"]["containerStatuses"]]


def _spec(cluster: Cluster, kind: str, name: str) -> Json:
    found = cluster.get(kind, name, namespace=MAIN)
    assert found is not None
    spec: Json = found["spec"]
    return spec


def _generation(cluster: Cluster) -> object:
    found = cluster.get("statefulset", "quickstart-broker", namespace=MAIN)
    assert found is not None
    return found["metadata"]["generation"]


def _config(cluster: Cluster) -> str:
    found = cluster.get("configmap", "quickstart-broker", namespace=MAIN)
    assert found is not None
    return str(found["data"]["server.properties"])
