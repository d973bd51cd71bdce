"""Clusters reconciled: what is told when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.brokers import BrokersError
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.reconcile.clusters import refuse
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples, rolls
from tests.operator.memory_kube import NODE_ADDRESS, MemoryKube
from tests.operator.ports import NOW, MemoryBrokers, context_on

KEY = Key("default", "quickstart")


def _status(kube: MemoryKube) -> dict[str, Any]:
    status = kube.find("KafkaCluster", "quickstart")["status"]
    assert isinstance(status, dict)
    return status


def _conditions(kube: MemoryKube) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in _status(kube)["conditions"]}


def test_from_nothing_to_ready() -> None:
    """Starting, then Ready with addresses, id and sizes."""
    kube = MemoryKube(examples.cluster())
    context = context_on(kube)
    reconcile(KEY, context)
    assert _conditions(kube) == {
        "Ready": ("False", "Starting"),
        "Reconciling": ("True", "StatefulSetPending"),
    }
    kube.settle()
    reconcile(KEY, context)
    assert _conditions(kube) == {"Ready": ("True", "Ready")}
    status = _status(kube)
    assert status["observedGeneration"] == 1
    assert status["clusterId"] == "an-id"
    assert status["brokers"] == {"replicas": 1, "ready": 1}
    assert status["storage"] == {"size": "2Gi", "arithmetic": []}
    assert [each["bootstrapServers"] for each in status["listeners"]] == [
        "quickstart-bootstrap.default.svc:9092",
        f"{NODE_ADDRESS}:32094",
    ]


THREE = {
    "zookeeper": {"replicas": 3, "storage": {"size": "1Gi"}},
    "brokers": {"replicas": 3, "storage": {"size": "1Gi"}},
}
VIEW = ClusterView(cluster_id="an-id", broker_ids=(0, 1, 2), controller_id=0)


def _three(*topics: dict[str, Any]) -> tuple[MemoryKube, MemoryBrokers, Context]:
    kube = MemoryKube(examples.cluster(**THREE), *topics)
    brokers = MemoryBrokers(view=VIEW)
    context = context_on(kube, brokers)
    reconcile(KEY, context)
    kube.settle()
    reconcile(KEY, context)
    return kube, brokers, context


def test_one_broker_away_of_three_is_still_a_ready_cluster() -> None:
    """Clients are served; that work goes on is Reconciling, and topics do not change at all."""
    kube, brokers, context = _three(examples.topic())
    kube.remove("Pod", "quickstart-broker-2")
    kube.writes.clear()
    reconcile(KEY, context)
    assert _conditions(kube) == {"Ready": ("True", "Ready"), "Reconciling": ("True", "PodMissing")}
    assert kube.writes == ["status KafkaCluster quickstart"]
    kube.put(examples.topic("another", replicas=2))
    reconcile(KEY, context)
    assert sorted(brokers.views) == ["another", "packages"]


def test_a_partition_without_a_leader_is_named_and_the_cluster_not_ready() -> None:
    """Ready pods do not help clients of that partition."""
    kube, brokers, context = _three()
    brokers.view = replace(VIEW, leaderless=("orders-0", "orders-3"))
    reconcile(KEY, context)
    assert _conditions(kube)["Ready"] == ("False", "LeaderlessPartitions")
    message = _status(kube)["conditions"][0]["message"]
    assert message == "2 partitions have no leader: orders-0, orders-3"


def test_a_cluster_is_not_ready_before_all_its_brokers_were_there_once() -> None:
    """The first broker alone could not hold the replicas that topics ask for."""
    kube = MemoryKube(examples.cluster(**THREE))
    context = context_on(kube, MemoryBrokers(view=VIEW))
    reconcile(KEY, context)
    kube.settle()
    kube.unready("quickstart-broker-2")
    reconcile(KEY, context)
    assert _conditions(kube)["Ready"] == ("False", "Starting")
    kube.settle()
    reconcile(KEY, context)
    assert _conditions(kube) == {"Ready": ("True", "Ready")}


def test_nothing_is_written_when_nothing_happened() -> None:
    """A pass over a cluster that is as it should be writes nothing: no status, no apply."""
    kube = MemoryKube(examples.cluster())
    context = context_on(kube)
    reconcile(KEY, context)
    kube.settle()
    reconcile(KEY, context)
    kube.writes.clear()
    reconcile(KEY, context)
    assert kube.writes == []


def test_ready_pods_that_do_not_answer_are_not_a_ready_cluster() -> None:
    """The brokers' own answer counts; the trouble is told."""
    kube = MemoryKube(examples.cluster())
    silent = MemoryBrokers(error=BrokersError("_TRANSPORT", "connection refused", reachable=False))
    context = context_on(kube, silent)
    reconcile(KEY, context)
    kube.settle()
    reconcile(KEY, context)
    assert _conditions(kube)["Ready"] == ("False", "Unreachable")
    assert "connection refused" in _status(kube)["conditions"][0]["message"]


def test_a_rejected_object_is_reported_and_the_others_are_applied() -> None:
    """A port in use stops one Service, not the cluster's other objects."""
    kube = MemoryKube(examples.cluster())
    kube.refuses["apply Service quickstart-broker-0-external"] = "port 32094 is already allocated"
    reconcile(KEY, context_on(kube))
    assert _conditions(kube)["Stalled"] == ("True", "Refused")
    assert "already allocated" in _status(kube)["conditions"][0]["message"]
    assert "apply StatefulSet quickstart-broker" in kube.writes


def test_a_setting_that_does_not_exist_stalls_the_cluster_before_anything_is_made() -> None:
    """The broker would only warn in its log; here the user reads it, with the likely name."""
    kube = MemoryKube(examples.cluster(config={"num.partition": "3"}))
    reconcile(KEY, context_on(kube))
    assert _conditions(kube)["Stalled"] == ("True", "InvalidSpec")
    assert "did you mean num.partitions?" in _status(kube)["conditions"][0]["message"]
    assert kube.writes == ["status KafkaCluster quickstart"]


def test_a_value_that_no_broker_would_start_with_stalls_the_cluster() -> None:
    """A wrong value is told on the resource, not found in the log of a pod that crashes."""
    kube = MemoryKube(examples.cluster(config={"num.partitions": "several"}))
    reconcile(KEY, context_on(kube))
    assert _conditions(kube)["Stalled"] == ("True", "InvalidSpec")
    assert "num.partitions=several" in _status(kube)["conditions"][0]["message"]


def test_pods_of_others_with_our_labels_are_not_ours() -> None:
    """A pod counts by its owner's identity."""
    kube = MemoryKube(examples.cluster())
    context = context_on(kube)
    reconcile(KEY, context)
    kube.settle()
    pod = kube.find("Pod", "quickstart-broker-0")
    pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "uid": "another"}]
    reconcile(KEY, context)
    assert _status(kube)["brokers"]["ready"] == 0


def test_conditions_keep_their_time() -> None:
    """The time of a condition is that of its last change of status."""
    kube = MemoryKube(examples.cluster())
    reconcile(KEY, context_on(kube))
    times = {each["lastTransitionTime"] for each in _status(kube)["conditions"]}
    assert times == {NOW}


def test_arithmetic_of_a_reckoned_claim_is_shown() -> None:
    """Who asks why the disk is so large finds the answer in the status."""
    sizing = {"messagesPerDay": 1000000, "averageMessageBytes": 1000}
    brokers = {"replicas": 1, "storage": {"sizing": sizing}}
    kube = MemoryKube(examples.cluster(brokers=brokers))
    reconcile(KEY, context_on(kube))
    lines = _status(kube)["storage"]["arithmetic"]
    assert lines[1] == "retained: 1,000,000 per day × 7 days = 7,000,000 messages"
    assert lines[-1].startswith("each broker = ")


def test_a_typo_of_thirty_brokers_can_be_taken_back() -> None:
    """Pods that never started hold nothing; topics were managed all the time."""
    kube, brokers, context = _three(examples.topic())
    brokers.view = replace(VIEW, replicas={0: 4, 1: 4, 2: 4})
    kube.put(examples.cluster(**{**THREE, "brokers": {**THREE["brokers"], "replicas": 30}}))
    reconcile(KEY, context)
    kube.settle(only="quickstart-broker-3", ready=False)
    kube.put(examples.topic("another"))
    reconcile(KEY, context)
    assert sorted(brokers.views) == ["another", "packages"]
    assert _conditions(kube)["Ready"] == ("True", "Ready")
    kube.put(examples.cluster(**THREE))
    reconcile(KEY, context)
    assert kube.find("StatefulSet", "quickstart-broker")["spec"]["replicas"] == 3
    kube.remove("Pod", "quickstart-broker-3")
    kube.settle()
    reconcile(KEY, context)
    assert _conditions(kube) == {"Ready": ("True", "Ready"), "Warning": ("True", "ClaimsKept")}
    assert "data-quickstart-broker-3" in _status(kube)["conditions"][1]["message"]


def test_a_broker_that_holds_replicas_is_kept_and_the_rest_goes_on() -> None:
    """The warning says how many; a change of settings is applied and rolled all the same."""
    kube, brokers, context = _three()
    brokers.view = replace(VIEW, replicas={0: 4, 1: 4, 2: 7})
    fewer = {**THREE["brokers"], "replicas": 1}
    kube.put(examples.cluster(**{**THREE, "brokers": fewer}, config={"num.partitions": "3"}))
    kube.writes.clear()
    reconcile(KEY, context)
    assert kube.find("StatefulSet", "quickstart-broker")["spec"]["replicas"] == 3
    assert "apply ConfigMap quickstart-broker" in kube.writes
    assert _conditions(kube)["Warning"] == ("True", "BrokersKept")
    assert "broker 2 holds 7 replicas" in _status(kube)["conditions"][-1]["message"]
    brokers.view = replace(VIEW, replicas={0: 4})
    reconcile(KEY, context)
    assert kube.find("StatefulSet", "quickstart-broker")["spec"]["replicas"] == 1


def test_a_claim_that_cannot_grow_is_a_warning_and_gates_nothing() -> None:
    """One short message with the remedy; the roll goes on, and the size can be set back."""
    kube, _, context = _three()
    for number in range(3):
        kube.refuses[f"patch PersistentVolumeClaim data-quickstart-broker-{number}"] = (
            "PATCH /api/v1/namespaces/default/persistentvolumeclaims/x: only dynamically"
            " provisioned pvc can be resized and the storageclass that provisions the pvc must"
            " support resize"
        )
    larger = {**THREE["brokers"], "storage": {"size": "3Gi"}}
    kube.put(examples.cluster(**{**THREE, "brokers": larger}, config={"num.partitions": "3"}))
    reconcile(KEY, context)
    conditions = {each["type"]: each for each in _status(kube)["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    assert conditions["Stalled"]["reason"] == "Refused"
    assert len(conditions["Stalled"]["message"]) < 400
    assert conditions["Warning"]["reason"] == "ClaimNotExpandable"
    assert "set the size back to 1Gi" in conditions["Warning"]["message"]
    kube.settle(pods=False)
    modes = {"10.0.0.0": "follower", "10.0.0.1": "leader", "10.0.0.2": "follower"}
    context = replace(context, ensemble_mode=lambda host, _: modes[host])
    reconcile(KEY, context)
    assert "evict Pod quickstart-broker-2" in kube.writes


def test_internal_topics_with_too_few_replicas_are_named() -> None:
    """They were created by the first broker and stay as they were when brokers are added."""
    kube, brokers, context = _three()
    brokers.view = replace(VIEW, internal={"__consumer_offsets": 1})
    reconcile(KEY, context)
    assert _conditions(kube) == {
        "Ready": ("True", "Ready"),
        "Warning": ("True", "InternalTopicReplicas"),
    }
    assert "__consumer_offsets has 1 replicas" in _status(kube)["conditions"][1]["message"]


def test_a_changed_storage_class_is_not_ignored_silently() -> None:
    """A StatefulSet's claim templates cannot change."""
    kube, _, context = _three()
    storage = {"size": "1Gi", "storageClass": "fast"}
    kube.put(examples.cluster(**{**THREE, "brokers": {"replicas": 3, "storage": storage}}))
    reconcile(KEY, context)
    assert _conditions(kube)["Warning"] == ("True", "StorageClassIgnored")


def test_a_setting_that_a_newer_operator_refuses_leaves_a_serving_cluster_ready() -> None:
    """It stalls: nothing is changed until the spec is corrected."""
    kube, _, context = _three()
    kube.put(examples.cluster(**THREE, config={"num.partition": "3"}))
    kube.writes.clear()
    reconcile(KEY, context)
    assert _conditions(kube) == {"Ready": ("True", "Ready"), "Stalled": ("True", "InvalidSpec")}
    assert kube.writes == ["status KafkaCluster quickstart"]


FEWER = {**THREE, "brokers": {**THREE["brokers"], "replicas": 1}}


@pytest.mark.parametrize(
    "view",
    [
        ClusterView(cluster_id="", broker_ids=(), controller_id=None),
        ClusterView(cluster_id="another", broker_ids=(0, 1, 2), controller_id=0),
        replace(VIEW, controller_id=None),
        replace(VIEW, broker_ids=(0, 2)),
    ],
    ids=["empty", "of another cluster", "without a controller", "without a broker that serves"],
)
def test_no_broker_goes_on_an_answer_that_may_not_be_the_whole_truth(view: ClusterView) -> None:
    """Such an answer counts no replica anywhere, and brokers without replicas are removed."""
    kube, brokers, context = _three()
    kube.put(examples.cluster(**FEWER))
    brokers.view = view
    reconcile(KEY, context)
    assert kube.find("StatefulSet", "quickstart-broker")["spec"]["replicas"] == 3
    assert _status(kube)["clusterId"] == "an-id"


def test_brokers_of_another_cluster_are_not_believed() -> None:
    """The cluster is not Ready, says why, and no topic is managed there."""
    kube, brokers, context = _three(examples.topic())
    brokers.view = replace(VIEW, cluster_id="another")
    brokers.steps.clear()
    reconcile(KEY, context)
    assert _conditions(kube)["Ready"][0] == "False"
    assert "brokers of another cluster answer" in _status(kube)["conditions"][0]["message"]
    assert brokers.steps == []


def test_a_stateful_set_without_its_label_is_still_there() -> None:
    """Otherwise the brokers that are kept for their replicas would be taken for absent."""
    kube, brokers, context = _three()
    brokers.view = replace(VIEW, replicas={0: 4, 1: 4, 2: 7})
    kube.put(examples.cluster(**FEWER))
    reconcile(KEY, context)
    del kube.find("StatefulSet", "quickstart-broker")["metadata"]["labels"][
        "app.kubernetes.io/instance"
    ]
    brokers.error = BrokersError("REQUEST_TIMED_OUT", "no answer", reachable=False)
    reconcile(KEY, context)
    assert kube.find("StatefulSet", "quickstart-broker")["spec"]["replicas"] == 3


def test_a_stateful_set_of_another_and_its_claims_stay_as_they_are() -> None:
    """Other charts name theirs `<release>-zookeeper` too, with the same common labels."""
    foreign: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "quickstart-zookeeper",
            "labels": {"app.kubernetes.io/instance": "quickstart"},
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "theirs"}},
            "template": {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": []}},
        },
    }
    claim: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-quickstart-zookeeper-0",
            "labels": {"app.kubernetes.io/instance": "quickstart"},
        },
        "spec": {"resources": {"requests": {"storage": "512Mi"}}},
    }
    kube = MemoryKube(examples.cluster(), foreign, claim)
    before = [kube.find(each["kind"], each["metadata"]["name"]) for each in (foreign, claim)]
    for _ in range(3):
        reconcile(KEY, context_on(kube))
    after = [kube.find(each["kind"], each["metadata"]["name"]) for each in (foreign, claim)]
    assert after == before
    assert _conditions(kube)["Ready"][0] == "False"
    assert _conditions(kube)["Stalled"][0] == "True"


@pytest.mark.parametrize("key", ["log.roll.ms", "log.segment.bytes", "log.roll.hours"])
def test_a_typo_in_a_setting_that_sizes_depend_on_stalls_the_cluster(key: str) -> None:
    """It is named; nothing is raised on the way to the arithmetic of claims."""
    sizing = {"messagesPerDay": 1_000_000, "averageMessageBytes": 1000}
    brokers = {"replicas": 1, "storage": {"sizing": sizing}}
    kube = MemoryKube(examples.cluster(brokers=brokers, config={key: "soon"}))
    reconcile(KEY, context_on(kube))
    assert _conditions(kube)["Stalled"] == ("True", "InvalidSpec")


@pytest.mark.parametrize("name", ["User:admin", "a;User:b", ""])
def test_a_super_user_that_is_no_name_is_refused(name: str) -> None:
    """It would be another principal than was meant."""
    cluster = read_cluster(examples.secured(authorization={"superUsers": [name]}))
    assert refuse(cluster).startswith(f"spec.authorization.superUsers: {name} must be a name")


def test_a_roll_that_cannot_be_shown_does_not_begin() -> None:
    """Its plan is written before its first pod is replaced; everything else is applied."""
    kube, _, context = rolls.changed()
    kube.remove("Service", "quickstart-bootstrap")
    kube.fail("status KafkaCluster", 403, times=None)
    for _ in range(2):
        with pytest.raises(KubeError, match="status KafkaCluster"):
            reconcile(rolls.KEY, context)
    assert kube.writes.count("apply Service quickstart-bootstrap") == 1
    assert not [write for write in kube.writes if write.startswith("evict")]
    kube.faults.clear()
    reconcile(rolls.KEY, context)
    assert rolls.FIRST in kube.writes
