"""The API server in memory behaves as a real one where the operator depends on it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.kube import CLAIMS, CONFIG_MAPS, PODS, KubeError
from barnabas_operator.resources.zookeeper import zookeeper_objects
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube

SIDECAR = {"name": "proxy", "image": "proxy:1"}


def _config_map(**data: str) -> dict[str, Any]:
    meta = {"name": "c", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _stateful_set(image: str = "z:1") -> dict[str, Any]:
    return zookeeper_objects(read_cluster(examples.cluster()), image=image)[-1]


def _containers(kube: MemoryKube) -> list[Any]:
    pod = kube.find("StatefulSet", "quickstart-zookeeper")["spec"]["template"]["spec"]
    return [each["name"] for each in pod["containers"]]


def test_items_of_others_stay_in_keyed_lists() -> None:
    """A sidecar that a webhook added survives our next apply; an item that we drop goes."""
    kube = MemoryKube()
    kube.webhooks.append(
        lambda body: body["spec"]["template"]["spec"]["containers"].insert(0, dict(SIDECAR))
    )
    kube.apply(_stateful_set())
    kube.webhooks.clear()
    body = _stateful_set("z:2")
    del body["spec"]["template"]["spec"]["containers"][0]["env"][1]
    kube.apply(body)
    assert sorted(_containers(kube)) == ["proxy", "zookeeper"]
    pod = kube.find("StatefulSet", "quickstart-zookeeper")["spec"]["template"]["spec"]
    (ours,) = [each for each in pod["containers"] if each["name"] == "zookeeper"]
    assert (ours["image"], [each["name"] for each in ours["env"]]) == ("z:2", ["POD_NAME"])


def test_a_field_that_is_applied_no_longer_goes() -> None:
    """And stays where another manager has it too."""
    kube = MemoryKube()
    kube.apply(_config_map(a="1", b="2"))
    kube.apply(_config_map(a="1"))
    assert kube.find("ConfigMap", "c")["data"] == {"a": "1"}


def test_changing_a_field_takes_its_ownership() -> None:
    """`managedFields` says whose a field is; an apply takes it back."""
    kube = MemoryKube()
    kube.apply(_config_map(a="1", b="2"))
    kube.edit("ConfigMap", "c", lambda body: body["data"].update(a="other"))
    managers = {
        each["manager"]: each["fieldsV1"]
        for each in kube.find("ConfigMap", "c")["metadata"]["managedFields"]
    }
    assert managers["kubectl-edit"] == {"f:data": {"f:a": {}}}
    assert managers["barnabas-operator"] == {"f:data": {"f:b": {}}}
    with pytest.raises(KubeError, match="conflicts with"):
        kube.apply(_config_map(a="1", b="2"))
    kube.apply(_config_map(a="1", b="2"), uid=kube.find("ConfigMap", "c")["metadata"]["uid"])
    assert kube.find("ConfigMap", "c")["data"]["a"] == "1"


def test_the_resource_version_changes_with_each_change() -> None:
    """An apply that changes nothing is no new version; another is."""
    kube = MemoryKube()
    versions = [
        kube.apply(_config_map(a=value))["metadata"]["resourceVersion"] for value in ("1", "1", "2")
    ]
    assert versions[0] == versions[1] != versions[2]


@pytest.mark.parametrize("field", ["serviceName", "selector", "volumeClaimTemplates"])
def test_a_stateful_set_has_immutable_fields(field: str) -> None:
    """They are refused in the API server's words."""
    kube = MemoryKube()
    kube.apply(_stateful_set())
    changed = _stateful_set()
    if field == "serviceName":
        changed["spec"]["serviceName"] = "other"
    elif field == "selector":
        changed["spec"]["selector"]["matchLabels"] = {"app.kubernetes.io/name": "barnabas"}
    else:
        changed["spec"]["volumeClaimTemplates"][0]["spec"]["accessModes"] = ["ReadOnlyMany"]
    with pytest.raises(KubeError, match="updates to statefulset spec for fields other") as raised:
        kube.apply(changed)
    assert raised.value.refused


def test_claims_neither_shrink_nor_grow_on_every_class() -> None:
    """The API server's own words again."""
    kube = MemoryKube()
    kube.apply(_stateful_set())
    kube.settle()
    name = "data-quickstart-zookeeper-0"

    def resize(size: str) -> None:
        request = {"spec": {"resources": {"requests": {"storage": size}}}}
        kube.patch(CLAIMS, "default", name, request)

    with pytest.raises(KubeError, match="can not be less than status"):
        resize("1Mi")
    kube.fixed_classes.add(None)
    with pytest.raises(KubeError, match="storageclass that provisions the pvc must support resize"):
        resize("9Gi")
    kube.fixed_classes.clear()
    resize("9Gi")


def test_a_request_fails_before_or_after_it_took_effect() -> None:
    """As often as is said; a lost answer leaves the change."""
    kube = MemoryKube()
    kube.fail("apply ConfigMap c", 429)
    kube.fail("apply ConfigMap c", 0, applied=True)
    for status, found in ((429, None), (0, "1")):
        with pytest.raises(KubeError) as raised:
            kube.apply(_config_map(a="1"))
        assert raised.value.status == status
        body = kube.get(CONFIG_MAPS, "default", "c")
        assert (body and body["data"]["a"]) == found
    kube.apply(_config_map(a="2"))
    assert kube.writes == ["apply ConfigMap c"] * 2


def test_a_pod_goes_when_its_kubelet_ended_it() -> None:
    """Until then it terminates; its claim and the other pods stay."""
    kube = MemoryKube()
    kube.apply(_stateful_set())
    kube.settle()
    pod = kube.find("Pod", "quickstart-zookeeper-0")
    kube.delete(PODS, "default", "quickstart-zookeeper-0", uid="another")
    assert "deletionTimestamp" not in pod["metadata"]
    kube.delete(PODS, "default", "quickstart-zookeeper-0", uid=pod["metadata"]["uid"])
    assert pod["metadata"]["deletionTimestamp"]
    kube.settle()
    assert kube.find("Pod", "quickstart-zookeeper-0")["metadata"]["uid"] != pod["metadata"]["uid"]


def test_an_eviction_is_bound_to_the_budget() -> None:
    """Refused until the disruption controller has seen the budget, and when it is spent."""
    kube = MemoryKube()
    three = examples.cluster(zookeeper={"replicas": 3, "storage": {"size": "1Gi"}})
    for body in zookeeper_objects(read_cluster(three), image="z:1"):
        kube.apply(body)
    kube.settle()

    def evict(name: str) -> None:
        kube.evict("default", name, uid=kube.find("Pod", name)["metadata"]["uid"])

    evict("quickstart-zookeeper-2")
    with pytest.raises(KubeError, match="would violate the pod's disruption budget") as raised:
        evict("quickstart-zookeeper-1")
    assert raised.value.status == 429
    kube.settle()
    evict("quickstart-zookeeper-1")


def test_objects_without_an_owner_are_collected() -> None:
    """By the owner's uid: one of the same name is another."""
    kube = MemoryKube(examples.cluster())
    kube.apply(_stateful_set())
    kube.settle()
    kube.collect_garbage()
    assert ("Pod", "default", "quickstart-zookeeper-0") in kube.objects
    kube.remove("KafkaCluster", "quickstart")
    kube.put({**examples.cluster(), "metadata": {"name": "quickstart"}})
    kube.collect_garbage()
    assert ("StatefulSet", "default", "quickstart-zookeeper") not in kube.objects
    assert ("Pod", "default", "quickstart-zookeeper-0") not in kube.objects
    assert ("PersistentVolumeClaim", "default", "data-quickstart-zookeeper-0") in kube.objects
