"""Plans of a cluster, as transcripts over its life."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.plan.clusters import plan_cluster
from barnabas_operator.plan.findings import Severity
from barnabas_operator.plan.observed import ClusterView, Images
from barnabas_operator.plan.snapshot import Plan
from barnabas_operator.reconcile.apply import apply_steps
from barnabas_operator.reconcile.clusters import observe
from barnabas_operator.reconcile.context import Context
from tests.operator import examples
from tests.operator.memory_kube import NODE, MemoryKube
from tests.operator.plan import transcript
from tests.operator.ports import MemoryBrokers, context_on

IMAGES = Images(broker="b:1", zookeeper="z:1", pipeline="p:1")


def _plan(context: Context, document: dict[str, Any], images: Images = IMAGES) -> Plan:
    cluster = read_cluster(document)
    return plan_cluster(cluster, observe(cluster, context), images=images)


def _take(context: Context, document: dict[str, Any], images: Images = IMAGES) -> tuple[str, ...]:
    plan = _plan(context, document, images)
    assert apply_steps(plan.steps, read_cluster(document).meta, context) == ()
    return transcript(plan.steps)


def _waiting(plan: Plan) -> list[str]:
    return [each.message for each in plan.of(Severity.WAITING)]


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
    assert _waiting(plan) == [
        "quickstart-zookeeper-0 is not ready",
        "quickstart-broker-0 is not ready",
    ]
    kube.settle()
    assert _plan(context, examples.cluster()) == Plan()


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
    assert "Kubernetes has not assigned a node port to listener out" in _waiting(first)
    assert not any("StatefulSet quickstart-broker" in line for line in transcript(first.steps))
    _take(context, document)
    assert _take(context, document)[-1] == "apply StatefulSet quickstart-broker: missing"
    arguments = kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]["spec"]
    assert any(
        "OUT://{HOST_IP}:{30000+POD_INDEX}" in each
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
    assert "broker: 1 pods to replace" in _waiting(_plan(context, changed))
    assert _take(context, changed) == ("delete Pod quickstart-broker-0: its pod template changed",)
    kube.settle()
    assert _plan(context, changed) == Plan()


THREE = {
    "zookeeper": {"replicas": 3, "storage": {"size": "1Gi"}},
    "brokers": {"replicas": 3, "storage": {"size": "1Gi"}},
}


def _rolling(**answers: Any) -> tuple[MemoryKube, Context, dict[str, Any]]:
    """A settled cluster of three and three whose pods all have an older template."""
    document = examples.cluster(**THREE)
    kube = MemoryKube()
    modes = {"10.0.0.0": "follower", "10.0.0.1": "leader", "10.0.0.2": "follower"}
    view = ClusterView(cluster_id="an-id", broker_ids=(0, 1, 2), controller_id=2)
    context = replace(
        context_on(kube, MemoryBrokers(view=view)), ensemble_mode=lambda host, _: modes[host]
    )
    context = replace(context, **answers)
    _take(context, document)
    kube.settle()
    document = examples.cluster(**THREE, images={"broker": "b:2", "zookeeper": "z:2"})
    _take(context, document)
    kube.settle(pods=False)
    return kube, context, document


def _replace_up_to_the_first_broker(
    kube: MemoryKube, context: Context, document: dict[str, Any]
) -> None:
    """The ensemble and then broker 1 are replaced, and all these are Ready again."""
    while _deleted(lines := _take(context, document))[0].startswith("quickstart-zoo"):
        kube.settle(only=_deleted(lines)[0])
    kube.settle(only="quickstart-broker-1")


def _deleted(lines: tuple[str, ...]) -> list[str]:
    return [line.split()[2].rstrip(":") for line in lines if line.startswith("delete Pod")]


def test_the_ensemble_is_replaced_before_the_brokers_and_leaders_last() -> None:
    """New images for both: followers, leader, brokers, controller; one pod in a pass."""
    kube, context, document = _rolling()
    deleted: list[str] = []
    while lines := _take(context, document):
        deleted += _deleted(lines)
        kube.settle()
    assert deleted == [
        "quickstart-zookeeper-2",
        "quickstart-zookeeper-0",
        "quickstart-zookeeper-1",
        "quickstart-broker-1",
        "quickstart-broker-0",
        "quickstart-broker-2",
    ]


def test_a_deleted_pod_is_waited_for() -> None:
    """The controllers take their time: the next pass finds a pod less and deletes none."""
    kube, context, document = _rolling()
    assert _deleted(_take(context, document)) == ["quickstart-zookeeper-2"]
    plan = _plan(context, document)
    assert plan.steps == ()
    assert "quickstart-zookeeper-2 is terminating" in _waiting(plan)
    kube.settle(pods=False)
    plan = _plan(context, document)
    assert plan.steps == ()
    assert "zookeeper: 2 of 3 pods exist" in _waiting(plan)
    kube.settle(ready=False, only="quickstart-zookeeper-2")
    plan = _plan(context, document)
    assert plan.steps == ()
    assert "quickstart-zookeeper-2 is not ready" in _waiting(plan)


def test_no_ensemble_member_is_replaced_while_a_broker_is_not_ready() -> None:
    """The reverse holds too: brokers that come back need their sessions."""
    kube, context, document = _rolling()
    kube.unready("quickstart-broker-0")
    plan = _plan(context, document)
    assert plan.steps == ()
    assert "the roll of the ensemble waits: quickstart-broker-0 is not ready" in _waiting(plan)


def test_no_ensemble_member_is_replaced_in_a_pass_that_adds_brokers() -> None:
    """They are missing as soon as the StatefulSet is applied."""
    _, context, document = _rolling()
    document["spec"]["brokers"]["replicas"] += 1
    steps = _plan(context, document).steps
    assert any("StatefulSet quickstart-broker" in str(step) for step in steps)
    assert _deleted(transcript(steps)) == []


def test_no_broker_is_replaced_while_a_member_of_the_ensemble_is_not_ready() -> None:
    """Brokers that come back need their sessions, and another member may go at any time."""
    kube, context, document = _rolling()
    _replace_up_to_the_first_broker(kube, context, document)
    kube.unready("quickstart-zookeeper-1")
    plan = _plan(context, document)
    assert plan.steps == ()
    assert "the roll of the brokers waits: quickstart-zookeeper-1 is not ready" in _waiting(plan)


def test_no_roll_without_a_quorum_of_which_all_members_are_known() -> None:
    """A member that names no mode may be the one without which there is no quorum."""
    _, context, document = _rolling(ensemble_mode=lambda *_: "")
    plan = _plan(context, document)
    assert plan.steps == ()
    assert any("names no mode in answer to srvr" in line for line in _waiting(plan))


def test_a_broker_that_is_not_ready_is_never_restarted_for_that() -> None:
    """It has an older template and may be in log recovery; its progress is told."""
    kube, context, document = _rolling(recovery=lambda *_: "logs=4, of=9")
    _replace_up_to_the_first_broker(kube, context, document)
    kube.unready("quickstart-broker-0")
    plan = _plan(context, document)
    assert plan.steps == ()
    assert "quickstart-broker-0 is not ready: log recovery: logs=4, of=9" in _waiting(plan)


def test_a_broken_broker_of_an_older_template_is_replaced_at_once() -> None:
    """The correction of a mistake must reach the pod that suffers from it."""
    kube, context, document = _rolling()
    kube.unready("quickstart-broker-0")
    kube.breaks("quickstart-broker-1", "ImagePullBackOff")
    assert _take(context, document) == (
        "delete Pod quickstart-broker-1: ImagePullBackOff, and its pod template changed",
    )


def test_a_broken_broker_of_the_current_template_stops_the_roll_by_name() -> None:
    """The next one would break as well; the message says which pod and what to do."""
    kube, context, document = _rolling()
    _replace_up_to_the_first_broker(kube, context, document)
    kube.breaks("quickstart-broker-1", "CrashLoopBackOff")
    plan = _plan(context, document)
    assert plan.steps == ()
    (stalled,) = plan.of(Severity.STALLED)
    assert stalled.message == (
        "the roll stopped: quickstart-broker-1 is in CrashLoopBackOff with the current template;"
        " correct the spec, or repair what it needs"
    )


def test_drift_is_reverted() -> None:
    """Drift is corrected, and the reason says what it was."""
    kube = MemoryKube()
    context = context_on(kube)
    _take(context, examples.cluster())
    broken = {"zoo.cfg": "tickTime=1"}
    kube.edit("ConfigMap", "quickstart-zookeeper", lambda body: body["data"].update(broken))
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
    assert [each.message for each in plan.of(Severity.WARNING)] == [
        "data-quickstart-broker-0 keeps its 5.0 GiB: a claim cannot shrink to 2Gi"
    ]


IN_RACKS = {
    "replicas": 2,
    "storage": {"size": "1Gi"},
    "rack": {"topologyKey": "topology.kubernetes.io/zone"},
}


def _node(**labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": NODE, "namespace": "", "labels": labels}}


def test_brokers_are_annotated_with_their_racks() -> None:
    """Once a pod has a node the operator writes that node's rack on the pod, once."""
    kube = MemoryKube(_node(**{"topology.kubernetes.io/zone": "east"}))
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    assert _take(context, document) == (
        "annotate Pod quickstart-broker-0 with its rack: east",
        "annotate Pod quickstart-broker-1 with its rack: east",
    )
    pod = kube.find("Pod", "quickstart-broker-1")
    assert pod["metadata"]["annotations"] == {"barnabas.io/rack": "east"}
    kube.settle()
    assert _plan(context, document) == Plan()


def test_a_node_without_a_rack_is_named() -> None:
    """A broker that waits for its rack says what is missing where."""
    kube = MemoryKube(_node())
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    plan = _plan(context, document)
    assert plan.steps == ()
    assert _waiting(plan)[0] == (
        "quickstart-broker-0 waits for its rack: "
        "node worker has no label topology.kubernetes.io/zone; label it"
    )


def test_a_missing_right_to_get_nodes_is_reported_with_its_remedy() -> None:
    """Racks need a right that the operator is only given on demand."""
    kube = MemoryKube()
    kube.refuses["get Node worker"] = "forbidden"
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    plan = _plan(context, document)
    assert "install the operator's chart with racks=true" in _waiting(plan)[0]


def test_a_webhook_that_alters_a_value_starves_no_roll() -> None:
    """Its value is a warning: applied once, pods are replaced, and then nothing is written."""

    def mirror(body: dict[str, Any]) -> None:
        if body["kind"] == "StatefulSet":
            (container,) = body["spec"]["template"]["spec"]["containers"]
            container["image"] = f"mirror/{container['image'].removeprefix('mirror/')}"

    kube, document = MemoryKube(), examples.cluster()
    kube.webhooks.append(mirror)
    context = context_on(kube)
    _take(context, document)
    kube.settle()
    plan = _plan(context, document)
    assert plan.steps == ()
    assert [str(each.reason) for each in plan.of(Severity.WARNING)] == ["ValueAltered"] * 2
    document = examples.cluster(images={"broker": "b:2", "zookeeper": "z:2"})
    taken: list[str] = []
    while lines := _take(context, document):
        taken += lines
        kube.settle()
    assert [line.split(":")[0] for line in taken] == [
        "apply StatefulSet quickstart-zookeeper",
        "apply StatefulSet quickstart-broker",
        "delete Pod quickstart-zookeeper-0",
        "delete Pod quickstart-broker-0",
    ]


def test_a_rack_that_kubernetes_wrote_on_the_pod_needs_no_operator() -> None:
    """From 1.35 on the label is there when the pod is bound: no node is read, nothing written."""
    kube = MemoryKube()
    kube.refuses[f"get Node {NODE}"] = "forbidden"
    context = context_on(kube)
    document = examples.cluster(brokers=IN_RACKS)
    _take(context, document)
    kube.settle(ready=False)
    for ordinal in range(2):
        meta = kube.find("Pod", f"quickstart-broker-{ordinal}")["metadata"]
        meta["labels"]["topology.kubernetes.io/zone"] = "east"
    plan = _plan(context, document)
    assert plan.steps == ()
    assert not any("rack" in each.message for each in plan.findings)
