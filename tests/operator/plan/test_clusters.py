"""Plans of a cluster, as transcripts over its life."""

from __future__ import annotations

from typing import Any

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.plan.clusters import Images, Plan, plan_cluster
from barnabas_operator.plan.steps import transcript
from barnabas_operator.reconcile.clusters import observe
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.deeds import take
from tests.operator import examples
from tests.operator.memory_kube import NODE, MemoryKube
from tests.operator.ports import context_on

IMAGES = Images(broker="b:1", zookeeper="z:1", pipeline="p:1")


def _plan(context: Context, document: dict[str, Any], images: Images = IMAGES) -> Plan:
    cluster = read_cluster(document)
    return plan_cluster(cluster, observe(cluster, context), images=images)


def _take(context: Context, document: dict[str, Any], images: Images = IMAGES) -> tuple[str, ...]:
    plan = _plan(context, document, images)
    assert take(plan.steps, read_cluster(document).meta, context) == ""
    return transcript(plan.steps)


def test_a_cluster_comes_up() -> None:
    """The ensemble first, Services before what is told their ports, all in one pass."""
    kube = MemoryKube()
    context = context_on(kube)
    assert _take(context, examples.cluster()) == (
        "apply ConfigMap quickstart-zookeeper: missing",
        "apply Service quickstart-zookeeper-nodes: missing",
        "apply Service quickstart-zookeeper: missing",
        "apply PodDisruptionBudget quickstart-zookeeper: missing",
        "apply StatefulSet quickstart-zookeeper: missing",
        "apply Service quickstart-broker-nodes: missing",
        "apply Service quickstart-bootstrap: missing",
        "apply Service quickstart-broker-0-external: missing",
        "apply ConfigMap quickstart-broker: missing",
        "apply PodDisruptionBudget quickstart-broker: missing",
        "apply StatefulSet quickstart-broker: missing",
    )
    kube.settle(ready=False)
    plan = _plan(context, examples.cluster())
    assert plan.steps == ()
    assert plan.waiting == ("zookeeper: 0 of 1 pods ready", "broker: 0 of 1 pods ready")
    kube.settle()
    assert _plan(context, examples.cluster()) == Plan(steps=(), waiting=())


def test_brokers_wait_for_a_port_that_kubernetes_chooses() -> None:
    """The StatefulSet is not made before its pods can be told what to advertise."""
    listeners = [
        {"name": "plain", "port": 9092},
        {"name": "out", "type": "nodeport", "port": 9094},
    ]
    document = examples.cluster(listeners=listeners)
    kube = MemoryKube()
    context = context_on(kube)
    first = _plan(context, document)
    assert "Kubernetes has not chosen a port for out yet" in first.waiting
    assert not any("StatefulSet quickstart-broker" in line for line in transcript(first.steps))
    _take(context, document)
    assert _take(context, document)[-1] == "apply StatefulSet quickstart-broker: missing"
    arguments = kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]["spec"]
    assert any(
        "OUT://$HOST_IP:$((30000 + POD_INDEX))" in each
        for each in arguments["containers"][0]["command"]
    )


def test_a_new_configuration_rolls_the_broker_after_it_is_applied() -> None:
    """First the objects, and only in a later pass the pod."""
    kube = MemoryKube()
    context = context_on(kube)
    _take(context, examples.cluster())
    kube.settle()
    changed = examples.cluster(config={"num.partitions": "3"})
    assert _take(context, changed) == (
        "apply ConfigMap quickstart-broker: the resource asks for something else than before",
        "apply StatefulSet quickstart-broker: the resource asks for something else than before",
    )
    kube.settle()
    assert "broker: 1 pods to be made anew" in _plan(context, changed).waiting
    assert _take(context, changed) == ("delete Pod quickstart-broker-0: its template changed",)
    kube.settle()
    assert _plan(context, changed) == Plan(steps=(), waiting=())


def test_one_pod_at_a_time_over_ensemble_and_brokers() -> None:
    """New images for both: the ensemble's pods go first, one in a pass, then the broker."""
    document = examples.cluster(zookeeper={"replicas": 3, "storage": {"size": "1Gi"}})
    kube = MemoryKube()
    context = context_on(kube)
    _take(context, document)
    kube.settle()
    newer = Images(broker="b:2", zookeeper="z:2", pipeline="p:2")
    _take(context, document, newer)
    kube.settle()
    deleted: list[str] = []
    while lines := _take(context, document, newer):
        deleted += lines
        kube.settle()
    assert [line.split()[2] for line in deleted] == [
        "quickstart-zookeeper-2:",
        "quickstart-zookeeper-1:",
        "quickstart-zookeeper-0:",
        "quickstart-broker-0:",
    ]


def test_what_somebody_changed_is_put_back() -> None:
    """Drift is corrected, and the reason says what it was."""
    kube = MemoryKube()
    context = context_on(kube)
    _take(context, examples.cluster())
    kube.find("ConfigMap", "quickstart-zookeeper")["data"]["zoo.cfg"] = "tickTime=1"
    kube.remove("Service", "quickstart-bootstrap")
    assert _take(context, examples.cluster()) == (
        "apply ConfigMap quickstart-zookeeper: data.zoo.cfg was changed",
        "apply Service quickstart-bootstrap: missing",
    )


def test_storage_grows_by_the_claim() -> None:
    """A claim template cannot change, so the claim is; and it never shrinks."""
    kube = MemoryKube()
    context = context_on(kube)
    _take(context, examples.cluster())
    kube.settle()
    larger = examples.cluster(brokers={"replicas": 1, "storage": {"size": "5Gi"}})
    assert _take(context, larger) == (
        "grow PersistentVolumeClaim data-quickstart-broker-0 to 5Gi: it has 2Gi",
    )
    assert _plan(context, larger).steps == ()
    plan = _plan(context, examples.cluster())
    assert plan.steps == ()
    assert plan.warnings == (
        "data-quickstart-broker-0 keeps its 5.0 GiB: a claim cannot shrink to 2Gi",
    )


IN_RACKS = {
    "replicas": 2,
    "storage": {"size": "1Gi"},
    "rack": {"topologyKey": "topology.kubernetes.io/zone"},
}


def _node(**labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": NODE, "namespace": "", "labels": labels}}


def test_brokers_are_told_their_racks() -> None:
    """Once a pod has a node the operator writes that node's rack on the pod, once."""
    kube = MemoryKube(_node(**{"topology.kubernetes.io/zone": "east"}))
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    assert _take(context, document) == (
        "tell Pod quickstart-broker-0 its rack: east",
        "tell Pod quickstart-broker-1 its rack: east",
    )
    pod = kube.find("Pod", "quickstart-broker-1")
    assert pod["metadata"]["annotations"] == {"barnabas.io/rack": "east"}
    kube.settle()
    assert _plan(context, document) == Plan(steps=(), waiting=())


def test_a_node_without_a_rack_is_named() -> None:
    """A broker that waits for its rack says what is missing where."""
    kube = MemoryKube(_node())
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    plan = _plan(context, document)
    assert plan.steps == ()
    assert plan.waiting[0] == (
        "quickstart-broker-0 waits for its rack: "
        "node worker has no label topology.kubernetes.io/zone; label it"
    )


def test_without_the_right_to_get_nodes_the_remedy_is_told() -> None:
    """Racks need a right that the operator is only given on demand."""
    kube = MemoryKube()
    kube.refuses["get Node worker"] = "forbidden"
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    plan = _plan(context, document)
    assert "install the operator's chart with racks=true" in plan.waiting[0]
