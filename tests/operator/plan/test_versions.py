"""Versions: which images a cluster runs, and that an operator's upgrade rolls nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.names import IMAGE, RENDERED
from barnabas_operator.plan.observed import Images
from barnabas_operator.plan.versions import chosen_images, is_held
from barnabas_operator.reconcile.reconciler import RESYNC_S, SOON_S, Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
VERSIONS = {"0.2.0": {"broker": "b:2", "zookeeper": "z:2"}}
OLD = Images(broker="b:1", zookeeper="z:1", pipeline="p:1", operator="1", versions={})
NEW = Images(broker="b:2", zookeeper="z:2", pipeline="p:2", operator="2", versions=VERSIONS)


@pytest.mark.parametrize(
    ("spec", "status", "expected", "unknown"),
    [
        ({}, {}, "b:2", ""),
        ({}, {"images": {"broker": "b:1", "zookeeper": "z:1"}}, "b:1", ""),
        ({"version": "0.2.0"}, {"images": {"broker": "b:1", "zookeeper": "z:1"}}, "b:2", ""),
        ({"version": "9"}, {"images": {"broker": "b:1", "zookeeper": "z:1"}}, "b:1", "knows 0.2.0"),
        ({"version": "0.2.0", "images": {"broker": "mine"}}, {}, "mine", ""),
    ],
)
def test_the_first_that_says_so_chooses_the_image(
    spec: dict[str, Any], status: dict[str, Any], expected: str, unknown: str
) -> None:
    """An unknown version leaves what runs, and is told with the known ones."""
    document = {**examples.cluster(**spec), "status": status}
    chosen = chosen_images(read_cluster(document), {}, NEW)
    assert chosen.broker == expected
    assert unknown in chosen.unknown


def _context(kube: MemoryKube, images: Images) -> Any:
    return replace(context_on(kube, MemoryBrokers()), images=images)


def _settled() -> MemoryKube:
    kube = MemoryKube(examples.cluster())
    for _ in range(2):
        reconcile(KEY, _context(kube, OLD))
        kube.settle()
    reconcile(KEY, _context(kube, OLD))
    return kube


def test_an_upgrade_of_the_operator_rolls_nothing() -> None:
    """Images and pod templates stay as they are; the status says that there are newer ones."""
    kube = _settled()
    before = {key: body["spec"] for key, body in kube.objects.items() if key[0] == "StatefulSet"}
    kube.writes.clear()
    for _ in range(3):
        reconcile(KEY, _context(kube, NEW))
        kube.settle()
    assert kube.writes == ["status KafkaCluster quickstart"]
    assert before == {key: kube.objects[key]["spec"] for key in before}
    status = kube.find("KafkaCluster", "quickstart")["status"]
    assert status["images"] == {"broker": "b:1", "zookeeper": "z:1"}
    assert "b:2" in status["updateAvailable"]
    assert [each["type"] for each in status["conditions"]] == ["Ready"]


def test_the_cluster_is_updated_when_its_spec_asks_for_the_version() -> None:
    """And a change of something else keeps the images."""
    kube = _settled()
    kube.put(examples.cluster(config={"num.partitions": "3"}))
    reconcile(KEY, _context(kube, NEW))
    pod = kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "b:1"
    kube.put(examples.cluster(version="0.2.0"))
    reconcile(KEY, _context(kube, NEW))
    pod = kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "b:2"
    assert kube.find("KafkaCluster", "quickstart")["status"]["images"]["broker"] == "b:2"


def test_objects_without_a_stamp_are_held_until_the_resource_changes() -> None:
    """They are of an operator from before there were stamps."""
    ready = {"type": "Ready", "status": "True", "reason": "Ready"}
    document = {
        **examples.cluster(),
        "status": {"observedGeneration": 1, "conditions": [ready]},
    }
    found: dict[str, Any] = {"metadata": {"annotations": {}}}
    assert is_held(found, read_cluster(document), "2")
    document["metadata"]["generation"] = 2
    assert not is_held(found, read_cluster(document), "2")


def _as_an_earlier_operator_left_it(kube: MemoryKube) -> None:
    for (kind, _, _), body in kube.objects.items():
        if kind in ("StatefulSet", "ConfigMap"):
            for name in (RENDERED, IMAGE):
                body["metadata"].get("annotations", {}).pop(name, None)
    status = kube.find("KafkaCluster", "quickstart")["status"]
    for name in ("images", "updateAvailable", "heldGeneration", "initialized", "answering"):
        status.pop(name, None)


def test_an_upgrade_over_objects_without_stamps_rolls_nothing_and_goes_on() -> None:
    """Topics too: one broker may be away at that moment."""
    kube = _settled()
    _as_an_earlier_operator_left_it(kube)
    kube.writes.clear()
    for _ in range(3):
        reconcile(KEY, _context(kube, NEW))
    assert not [each for each in kube.writes if "StatefulSet" in each or "Pod" in each]
    status = kube.find("KafkaCluster", "quickstart")["status"]
    assert (status["heldGeneration"], status["initialized"]) == (1, True)


def test_a_change_that_cannot_be_applied_at_once_is_applied_later() -> None:
    """The status observes a generation before its objects have it; that holds nothing."""
    kube = _settled()
    _as_an_earlier_operator_left_it(kube)
    reconcile(KEY, _context(kube, NEW))
    kube.put(examples.cluster(config={"num.partitions": "3"}))
    kube.refuses = {"apply StatefulSet quickstart-broker": "a webhook says no"}
    reconcile(KEY, _context(kube, NEW))
    kube.refuses = {}
    assert kube.find("KafkaCluster", "quickstart")["status"]["observedGeneration"] == 2
    kube.writes.clear()
    reconcile(KEY, _context(kube, NEW))
    assert "apply StatefulSet quickstart-broker" in kube.writes


def test_a_roll_waits_for_its_approval() -> None:
    """The status names the annotation; with it the pod is replaced."""
    policy = {"type": "OnApproval"}
    kube = _settled()
    kube.put(examples.cluster(rollPolicy=policy, config={"num.partitions": "3"}))
    for _ in range(2):
        reconcile(KEY, _context(kube, OLD))
        kube.settle(pods=False)
    # Only a person ends this: there is nothing to look for soon.
    assert reconcile(KEY, _context(kube, OLD)).again_in == RESYNC_S
    assert "evict Pod quickstart-broker-0" not in kube.writes
    conditions = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    (held,) = [each for each in conditions if each["type"] == "Reconciling"]
    assert held["reason"] == "RollHeldBack"
    message = held["message"]
    token = message.partition("approve-roll=")[2][:8]
    approved = examples.cluster(rollPolicy=policy, config={"num.partitions": "3"})
    approved["metadata"]["annotations"] = {"barnabas.io/approve-roll": token}
    kube.put(approved)
    assert reconcile(KEY, _context(kube, OLD)).again_in == SOON_S
    assert "evict Pod quickstart-broker-0" in kube.writes
