"""Pipelines reconciled: waiting, running, failing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from barnabas_operator.kube import Document
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.reconciler import FIGURES_S, SOON_S, Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
NAME = "packages-to-parquet"
PACKAGES = TopicView(name="packages", topic_id="id", partitions=3, replicas=1, config={})
RUNNING = Progress(phase="Running", rows=500, rows_per_second=99.5, lag=7, last_batch_id=3)


def _status(kube: MemoryKube) -> dict[str, Any]:
    status = kube.find("KafkaPipeline", NAME)["status"]
    assert isinstance(status, dict)
    return status


def _up(brokers: MemoryBrokers) -> MemoryKube:
    kube = MemoryKube(examples.cluster(), examples.pipeline())
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    return kube


def test_it_waits_for_cluster_then_topic_then_pod() -> None:
    """Each stage says what is waited for; no pod is made for a topic that is not there."""
    kube = MemoryKube(examples.pipeline())
    reconcile(KEY, context_on(kube))
    assert _status(kube)["phase"] == "WaitingForCluster"
    brokers = MemoryBrokers()
    kube.put(examples.cluster())
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    assert reconcile(KEY, context_on(kube, brokers)).again_in == SOON_S
    assert _status(kube)["phase"] == "WaitingForTopics"
    assert ("StatefulSet", "default", f"{NAME}-pipeline") not in kube.objects
    brokers.views["packages"] = PACKAGES
    reconcile(KEY, context_on(kube, brokers))
    assert _status(kube)["phase"] == "Starting"
    assert ("StatefulSet", "default", f"{NAME}-pipeline") in kube.objects


def test_figures_of_a_running_pipeline() -> None:
    """Phase, rows, rate and lag are what the pod says; they are asked for every few seconds."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    assert reconcile(KEY, context_on(kube, brokers, RUNNING)).again_in == FIGURES_S
    status = _status(kube)
    assert (status["phase"], status["rows"], status["rowsPerSecond"]) == ("Running", 500, 99.5)
    assert (status["lag"], status["lastBatchId"]) == (7, 3)
    assert [each["type"] for each in status["conditions"]] == ["Ready"]


@pytest.mark.parametrize(
    ("told", "types"),
    [
        (Progress(phase="Failed", message="disk full"), ["Ready", "Stalled"]),
        (Progress(phase="Stopping"), ["Ready", "Reconciling"]),
        (None, ["Ready", "Reconciling"]),
    ],
)
def test_other_phases(told: Progress | None, types: list[str]) -> None:
    """A failure waits for a person; anything else passes."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, told))
    assert [each["type"] for each in _status(kube)["conditions"]] == types


def test_rows_are_not_forgotten_while_the_pod_is_away() -> None:
    """A pod that is made anew does not set the count back to nothing."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    reconcile(KEY, context_on(kube, brokers, None))
    assert (_status(kube)["phase"], _status(kube)["rows"]) == ("Starting", 500)


def test_a_running_pipeline_is_left_alone_when_its_topic_goes() -> None:
    """It knows best how to wait; its objects are still kept as they should be."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    brokers.views.clear()
    kube.remove("StatefulSet", f"{NAME}-pipeline")
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    assert ("StatefulSet", "default", f"{NAME}-pipeline") in kube.objects
    assert _status(kube)["phase"] == "Running"


def test_more_storage_is_a_larger_claim() -> None:
    """The StatefulSet keeps its template, which cannot change; the claim is grown."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    kube.settle()
    kube.put(examples.pipeline(storage={"size": "9Gi"}))
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    assert f"patch PersistentVolumeClaim data-{NAME}-pipeline-0" in kube.writes
    templates = kube.find("StatefulSet", f"{NAME}-pipeline")["spec"]["volumeClaimTemplates"]
    assert templates[0]["spec"]["resources"]["requests"]["storage"] == "1Gi"


def _claim(name: str) -> Document:
    labels = {"app.kubernetes.io/component": "pipeline", "barnabas.io/pipeline": NAME}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": labels},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    }


def test_claims_of_others_are_not_grown() -> None:
    """Labels prove nothing, nor does a name as long as another has the StatefulSet."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    labels = {"app": "another"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    kube.put(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": f"{NAME}-pipeline", "labels": labels},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        }
    )
    kube.put(_claim("somebodys"))
    kube.put(_claim(f"data-{NAME}-pipeline-0"))
    kube.put(examples.pipeline(storage={"size": "9Gi"}))
    kube.writes.clear()
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    assert not [each for each in kube.writes if "PersistentVolumeClaim" in each]
    assert _status(kube)["conditions"][0]["reason"] == "Refused"


def test_figures_alone_are_not_written_in_each_pass() -> None:
    """Rows are counted all the time; a phase is written at once, with the figures of then."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    kube.writes.clear()
    more = dataclasses.replace(RUNNING, rows=501)
    early = dataclasses.replace(context_on(kube, brokers, more), figures_due=lambda _: False)
    reconcile(KEY, early)
    assert kube.writes == []
    failed = dataclasses.replace(more, phase="Failed", message="disk full")
    reconcile(KEY, dataclasses.replace(early, progress=lambda _: failed))
    assert (_status(kube)["phase"], _status(kube)["rows"]) == ("Failed", 501)
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    assert _status(kube)["rows"] == 500
