"""Clusters reconciled: what is told when."""

from __future__ import annotations

from typing import Any

from barnabas_operator.brokers import BrokersError
from barnabas_operator.reconcile.passes import Key, reconcile
from tests.operator import examples
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
        "Reconciling": ("True", "Starting"),
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


def test_what_the_api_server_refuses_is_told_and_the_rest_is_done() -> None:
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
