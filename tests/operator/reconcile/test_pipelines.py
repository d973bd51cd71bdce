"""Pipelines reconciled: waiting, running, failing."""

from __future__ import annotations

import copy
import dataclasses
import json
from base64 import b64decode
from typing import Any

import pytest

from barnabas_operator.kube import Document
from barnabas_operator.names import RENDERED
from barnabas_operator.plan.observed import Images
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.reconciler import FIGURES_S, SOON_S, Key, reconcile
from barnabas_operator.resources import pipelines as resources
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
    ("reported", "types"),
    [
        (Progress(phase="Failed", message="disk full"), ["Ready", "Stalled"]),
        (Progress(phase="Stopping"), ["Ready", "Reconciling"]),
        (None, ["Ready", "Reconciling"]),
    ],
)
def test_other_phases(reported: Progress | None, types: list[str]) -> None:
    """A failure waits for a person; anything else passes."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, reported))
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


# --- users ----------------------------------------------------------------------------------------

WORKLOAD = f"{NAME}-pipeline"
INSECURE: dict[str, Any] = {}
SECURED = {
    "insecure": False,
    "listeners": [
        {"name": "secure", "port": 9093, "tls": {}, "authentication": {"type": "scram-sha-512"}}
    ],
}


def _passes(
    kube: MemoryKube, brokers: MemoryBrokers, reported: Progress | None = None, passes: int = 2
) -> None:
    for _ in range(passes):
        reconcile(KEY, context_on(kube, brokers, reported))
        kube.settle()


def _conditions(kube: MemoryKube) -> dict[str, Any]:
    return {each["type"]: each for each in _status(kube)["conditions"]}


def _secured(*documents: Document, pipeline: Document) -> tuple[MemoryKube, MemoryBrokers]:
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = MemoryKube(examples.cluster(**SECURED), pipeline, *documents)
    _passes(kube, brokers, passes=4)
    return kube, brokers


def _has_pod(kube: MemoryKube) -> bool:
    return ("StatefulSet", "default", WORKLOAD) in kube.objects


def test_a_secured_cluster_wants_a_user_and_says_what_to_write() -> None:
    """Nothing is created; the message has the field, the KafkaUser's cluster and its role."""
    kube, brokers = _secured(pipeline=examples.pipeline())
    stalled = _conditions(kube)["Stalled"]
    assert stalled["reason"] == "UserRequired"
    for words in ("spec.user", "cluster: quickstart", "{type: consumer, topic: packages}"):
        assert words in stalled["message"]
    assert not _has_pod(kube)
    kube.put(examples.pipeline_user())
    kube.put(examples.pipeline(user="archivist"))
    _passes(kube, brokers, RUNNING, passes=4)
    assert _conditions(kube)["Ready"]["status"] == "True"


def test_a_pipeline_runs_as_its_user() -> None:
    """The Secret of the user is a volume of the pod, and what it has is nowhere else."""
    kube, brokers = _secured(examples.pipeline_user(), pipeline=examples.pipeline(user="archivist"))
    _passes(kube, brokers, RUNNING)
    assert _conditions(kube)["Ready"]["status"] == "True"
    pod = kube.find("StatefulSet", WORKLOAD)["spec"]["template"]["spec"]
    secret = kube.find("Secret", "archivist")
    (volume,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
    assert volume["secretName"] == "archivist"
    password = b64decode(secret["data"]["password"]).decode()
    others = {key: body for key, body in kube.objects.items() if key[0] != "Secret"}
    assert password not in json.dumps(list(others.values()))


def test_a_changed_password_replaces_no_pod() -> None:
    """The pod reads the changed file itself."""
    kube, brokers = _secured(examples.pipeline_user(), pipeline=examples.pipeline(user="archivist"))
    before = copy.deepcopy(kube.find("StatefulSet", WORKLOAD))
    password = kube.find("Secret", "archivist")["data"]["password"]
    user = examples.pipeline_user()
    user["metadata"]["annotations"] = {"barnabas.io/rotate": "1"}
    kube.put(user)
    _passes(kube, brokers, RUNNING)
    assert kube.find("Secret", "archivist")["data"]["password"] != password
    assert kube.find("StatefulSet", WORKLOAD)["spec"] == before["spec"]


@pytest.mark.parametrize("cluster", [INSECURE, SECURED])
@pytest.mark.parametrize(
    ("user", "reason", "words"),
    [
        (None, "UserNotFound", "there is no KafkaUser archivist"),
        (
            examples.pipeline_user(cluster="another"),
            "UserOfAnotherCluster",
            "is a user of KafkaCluster another, not of quickstart",
        ),
        (
            examples.pipeline_user(clusterNamespace="elsewhere"),
            "UserOfAnotherCluster",
            "KafkaCluster quickstart of namespace elsewhere",
        ),
        (examples.pipeline_user(listener="absent"), "UserNotReady", "NoListener"),
        (examples.pipeline_user(quotas={"producerByteRate": -1}), "UserNotReady", "Invalid"),
    ],
)
def test_it_waits_for_its_user_and_goes_on_by_itself(
    cluster: dict[str, Any], user: Document | None, reason: str, words: str
) -> None:
    """Says why, has no pod meanwhile, and starts once the user is Ready."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    listeners = {"listeners": examples.LISTENERS, "authorization": {"type": "simple"}}
    kube = MemoryKube(
        examples.cluster(**{**listeners, **cluster}), examples.pipeline(user="archivist")
    )
    if user is not None:
        kube.put(user)
    _passes(kube, brokers, passes=4)
    found = _conditions(kube)
    assert found["Ready"]["status"] == "False"
    assert found["Reconciling"]["reason"] == reason
    assert words in found["Reconciling"]["message"]
    assert _status(kube)["phase"] == "WaitingForUser"
    assert not _has_pod(kube)
    if user is not None:
        kube.remove("KafkaUser", "archivist")
    kube.put(examples.pipeline_user())
    _passes(kube, brokers, RUNNING, passes=4)
    assert _has_pod(kube)
    assert _conditions(kube)["Ready"]["status"] == "True"


def test_a_pipeline_that_runs_goes_on_without_its_user() -> None:
    """A warning says so. What would replace its pod waits: the new one could not start."""
    kube, brokers = _secured(examples.pipeline_user(), pipeline=examples.pipeline(user="archivist"))
    _passes(kube, brokers, RUNNING)
    kube.remove("KafkaUser", "archivist")
    _passes(kube, brokers, RUNNING)
    found = _conditions(kube)
    assert (found["Ready"]["status"], found["Warning"]["reason"]) == ("True", "UserNotFound")
    before = copy.deepcopy(kube.find("StatefulSet", WORKLOAD)["spec"])
    changed = examples.pipeline(user="archivist", trigger={"interval": "7s"})
    changed["metadata"]["generation"] = 2
    kube.put(changed)
    _passes(kube, brokers, RUNNING)
    assert kube.find("StatefulSet", WORKLOAD)["spec"] == before
    found = _conditions(kube)
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("True", "Running")
    assert (_status(kube)["phase"], _status(kube)["rows"]) == ("Running", 500)
    assert found["Reconciling"]["reason"] == found["Warning"]["reason"] == "UserNotFound"
    assert "what would replace the pod waits" in found["Reconciling"]["message"]
    kube.put(examples.pipeline_user())
    _passes(kube, brokers, RUNNING, passes=3)
    assert kube.find("StatefulSet", WORKLOAD)["spec"] != before
    assert list(_conditions(kube)) == ["Ready"]


def test_running_pipeline_of_a_secured_cluster_keeps_its_phase_without_a_user() -> None:
    """The condition says what to write; the pod that runs is not replaced."""
    kube, brokers = _secured(examples.pipeline_user(), pipeline=examples.pipeline(user="archivist"))
    _passes(kube, brokers, RUNNING)
    before = copy.deepcopy(kube.find("StatefulSet", WORKLOAD)["spec"])
    changed = examples.pipeline()
    changed["metadata"]["generation"] = 2
    kube.put(changed)
    _passes(kube, brokers, RUNNING)
    assert _conditions(kube)["Stalled"]["reason"] == "UserRequired"
    assert _status(kube)["phase"] == "Running"
    assert kube.find("StatefulSet", WORKLOAD)["spec"] == before


def test_running_pipeline_keeps_its_phase_without_its_cluster() -> None:
    """The condition says what is missing, the phase what the pod does."""
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    kube = _up(brokers)
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    kube.remove("KafkaCluster", "quickstart")
    reconcile(KEY, context_on(kube, brokers, RUNNING))
    assert _status(kube)["phase"] == "Running"
    assert _conditions(kube)["Reconciling"]["reason"] == "WaitingForCluster"


def test_pipeline_whose_status_was_lost_is_running_by_what_its_pod_says() -> None:
    """As after a restore: the pod decides, not the phase that was written last."""
    kube, brokers = _secured(examples.pipeline_user(), pipeline=examples.pipeline(user="archivist"))
    _passes(kube, brokers, RUNNING)
    kube.remove("KafkaUser", "archivist")
    kube.edit("KafkaPipeline", NAME, lambda body: body.pop("status"))
    _passes(kube, brokers, RUNNING)
    assert _status(kube)["phase"] == "Running"
    assert _conditions(kube)["Warning"]["reason"] == "UserNotFound"


@pytest.mark.parametrize("phase", ["WaitingForAuthentication", "WaitingForAuthorization"])
def test_authorization_failures_of_the_pod_are_shown(phase: str) -> None:
    """The pod finds out, as it alone logs in as the user; it goes on by itself."""
    kube, brokers = _secured(examples.pipeline_user(), pipeline=examples.pipeline(user="archivist"))
    _passes(kube, brokers, Progress(phase=phase, message="it needs the role"))
    assert _status(kube)["phase"] == phase
    assert _conditions(kube)["Reconciling"]["message"] == "it needs the role"
    _passes(kube, brokers, RUNNING)
    assert list(_conditions(kube)) == ["Ready"]


# --- versions -------------------------------------------------------------------------------------

VERSIONS = {
    "0.2.0": {"broker": "b:2", "zookeeper": "z:2", "pipeline": "p:2"},
    "0.1.5": {"broker": "b:1", "zookeeper": "z:1"},
}
OLD = Images(broker="b:1", zookeeper="z:1", pipeline="p:1", operator="1")
NEW = Images(broker="b:2", zookeeper="z:2", pipeline="p:2", operator="2", versions=VERSIONS)


def _on_version(kube: MemoryKube, images: Images, reported: Progress = RUNNING) -> None:
    brokers = MemoryBrokers(views={"packages": PACKAGES})
    for _ in range(2):
        context = context_on(kube, brokers, reported)
        reconcile(KEY, dataclasses.replace(context, images=images))
        kube.settle()


def _image(kube: MemoryKube) -> str:
    pod = kube.find("StatefulSet", WORKLOAD)["spec"]["template"]["spec"]
    return str(pod["containers"][0]["image"])


def _changed(generation: int, **spec: Any) -> Document:
    document = examples.pipeline(**spec)
    document["metadata"]["generation"] = generation
    return document


@pytest.mark.parametrize("stamped", [True, False])
def test_an_upgrade_of_the_operator_replaces_no_pod_of_a_pipeline(
    stamped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it renders otherwise, and whether the earlier operator stamped its objects."""
    kube = MemoryKube(examples.cluster(), examples.pipeline())
    for _ in range(2):
        _on_version(kube, OLD)
    if not stamped:
        for key in (("StatefulSet", "default", WORKLOAD), ("ConfigMap", "default", WORKLOAD)):
            kube.objects[key]["metadata"]["annotations"].pop(RENDERED)
        status = kube.find("KafkaPipeline", NAME)["status"]
        del status["image"], status["heldGeneration"]
    before = copy.deepcopy({key: body for key, body in kube.objects.items() if key[2] == WORKLOAD})
    monkeypatch.setattr(resources, "CONFIG_PATH", "/etc/elsewhere")
    _on_version(kube, NEW)
    # The pod is away for a moment: that is no change of the resource either.
    _on_version(kube, NEW, Progress(phase="Starting"))
    _on_version(kube, NEW)
    assert {key: body for key, body in kube.objects.items() if key[2] == WORKLOAD} == before
    status = _status(kube)
    assert status["image"] == "p:1"
    assert "p:2; set spec.version" in status["updateAvailable"]
    assert list(_conditions(kube)) == ["Ready"]


def test_a_pipeline_is_updated_when_its_spec_asks_for_the_version() -> None:
    """A change of something else keeps the image; an image of one's own comes first."""
    kube = MemoryKube(examples.cluster(), examples.pipeline())
    _on_version(kube, OLD)
    kube.put(_changed(2, trigger={"interval": "7s"}))
    _on_version(kube, NEW)
    text = kube.find("ConfigMap", WORKLOAD)["data"]["pipeline.yaml"]
    assert "interval: 7s" in text
    assert _image(kube) == "p:1"
    kube.put(_changed(3, version="0.2.0"))
    _on_version(kube, NEW)
    assert (_image(kube), _status(kube)["image"]) == ("p:2", "p:2")
    assert not _status(kube).get("updateAvailable")
    kube.put(_changed(4, version="0.2.0", image="mine:1"))
    _on_version(kube, NEW)
    assert _image(kube) == "mine:1"


def test_an_unknown_version_of_a_pipeline_is_a_warning() -> None:
    """With those that are known: of some versions no image of pipelines is."""
    kube = MemoryKube(examples.cluster(), examples.pipeline())
    _on_version(kube, OLD)
    kube.put(_changed(2, version="0.1.5"))
    _on_version(kube, NEW)
    assert _image(kube) == "p:1"
    warning = _conditions(kube)["Warning"]
    assert warning["reason"] == "UnknownVersion"
    assert warning["message"].endswith("0.1.5 is unknown; this operator knows 0.2.0")


def test_a_new_pipeline_begins_with_the_image_of_the_operator() -> None:
    """Also one that has waited since before the upgrade."""
    kube = MemoryKube(examples.pipeline())
    _on_version(kube, OLD)
    kube.put(examples.cluster())
    for _ in range(2):
        _on_version(kube, NEW)
    assert _image(kube) == "p:2"
