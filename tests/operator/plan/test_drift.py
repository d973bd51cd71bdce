"""Drift: what counts as a difference and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.names import APPLIED_HASH, FIELD_MANAGER
from barnabas_operator.plan.drift import MERGE_KEYS, Difference, compare, differences, drift, shown
from barnabas_operator.resources.zookeeper import zookeeper_objects
from tests.operator import examples, openapi
from tests.operator.memory_kube import MemoryKube


def _object(value: Any, applied: str = "h") -> dict[str, Any]:
    return {"metadata": {"annotations": {APPLIED_HASH: applied}}, "spec": value}


def test_a_missing_object_is_drift() -> None:
    """The first reason to apply."""
    assert drift(_object(1), None) == "missing"


def test_defaults_of_the_server_are_no_drift() -> None:
    """What others add does not count."""
    found = _object({"ports": [{"port": 1, "protocol": "TCP"}], "clusterIP": "10.0.0.1"})
    assert drift(_object({"ports": [{"port": 1}]}), found) is None


def test_a_changed_value_is_named() -> None:
    """The reason says which value somebody changed."""
    found = _object({"ports": [{"port": 2}]})
    assert (
        drift(_object({"ports": [{"port": 1}]}), found)
        == "spec.ports[port=1,protocol=TCP] was changed"
    )


def test_a_field_that_is_wanted_no_longer_is_noticed_by_the_hash() -> None:
    """Comparing cannot see it: the object still has all that is wanted."""
    reason = drift(_object({}, applied="new"), _object({"old": 1}, applied="old"))
    assert reason == "the resource asks for something else than before"


@pytest.mark.parametrize(
    ("wanted", "found", "where"),
    [
        ({"a": {}}, {}, None),
        ({"a": {"b": 1}}, {"a": 1}, "a"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        ({"a": 1}, {}, "a"),
        ({"a": [1, [2]]}, {"a": [1, [3]]}, "a"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": "default"}]}, None),
        ({"memory": "1024Mi"}, {"memory": "1Gi"}, None),
        ({"cpu": "1000m"}, {"cpu": "1"}, None),
        ({"cpu": "1000m"}, {"cpu": "2"}, "cpu"),
        ({"cpu": 1}, {"cpu": "1"}, None),
        ({"cpu": 0.5}, {"cpu": "500m"}, None),
        ({"cpu": 1}, {"cpu": "2"}, "cpu"),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1", "b": "2"}}, "selector"),
        ({"data": {"a": "1000m"}}, {"data": {"a": "1"}}, "data.a"),
    ],
)
def test_first_difference(wanted: Any, found: Any, where: str | None) -> None:
    """Empty values may be left out; lists have a length; amounts are compared as amounts."""
    path = next(differences(wanted, found), None)
    assert (path and shown(path)) == where


def _stateful_set() -> dict[str, Any]:
    return zookeeper_objects(read_cluster(examples.cluster()), image="z:1")[-1]


def _pod(body: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = body["spec"]["template"]["spec"]
    return pod


def test_items_of_others_are_no_drift() -> None:
    """A sidecar before our container and a variable before ours: keyed lists merge, we own ours."""

    def inject(body: dict[str, Any]) -> None:
        _pod(body)["containers"].insert(0, {"name": "proxy", "image": "proxy:1"})
        _pod(body)["containers"][1]["env"].insert(0, {"name": "HTTP_PROXY", "value": "proxy"})
        _pod(body)["volumes"].insert(0, {"name": "proxy", "emptyDir": {}})

    kube = MemoryKube()
    kube.webhooks.append(inject)
    found = kube.apply(_stateful_set())
    assert compare(_stateful_set(), found, now=kube.now) == Difference()


def test_a_value_that_a_webhook_alters_is_a_warning() -> None:
    """It is ours still and differs all the same: to apply it again would change nothing."""

    def mirror(body: dict[str, Any]) -> None:
        _pod(body)["containers"][0]["image"] = "mirror/z:1"

    kube = MemoryKube()
    kube.webhooks.append(mirror)
    difference = compare(_stateful_set(), kube.apply(_stateful_set()), now=kube.now)
    assert difference.reason == ""
    assert difference.warning == (
        "spec.template.spec.containers[name=zookeeper].image is not what was applied:"
        " the API server or a mutating webhook alters it"
    )


def _managed(value: Any, fields: Any) -> dict[str, Any]:
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": fields}}
    body = _object(value)
    return {**body, "metadata": {**body["metadata"], "managedFields": [entry]}}


@pytest.mark.parametrize("value", [False, 0, ""])
def test_a_zero_that_the_server_leaves_out_is_no_drift(value: Any) -> None:
    """Most fields are written only if they are not zero; the manager of one that is keeps it."""
    wanted = _object({"volumeMounts": [{"mountPath": "/a", "readOnly": value}]})
    element = 'k:{"mountPath":"/a"}'
    ours: dict[str, Any] = {"f:volumeMounts": {element: {"f:readOnly": {}}}}
    found = {"volumeMounts": [{"mountPath": "/a"}]}
    assert compare(wanted, _managed(found, ours)) == Difference()
    # Somebody removed a field that has no such default: the field is nobody's any more.
    path = "spec.volumeMounts[mountPath=/a].readOnly"
    assert compare(wanted, _managed(found, {"f:other": {}})).reason == f"{path} was changed"
    true = {"volumeMounts": [{"mountPath": "/a", "readOnly": "other"}]}
    assert compare(wanted, _managed(true, ours)).warning.startswith(path)


def test_a_value_that_another_manager_took_is_drift() -> None:
    """Also beside one that a webhook alters."""
    kube = MemoryKube()
    kube.webhooks.append(lambda body: _pod(body)["containers"][0].update(image="mirror/z:1"))
    kube.apply(_stateful_set())
    kube.edit("StatefulSet", "quickstart-zookeeper", lambda body: body["spec"].update(replicas=3))
    found = kube.find("StatefulSet", "quickstart-zookeeper")
    assert drift(_stateful_set(), found) == "spec.replicas was changed"


def test_a_manager_that_takes_a_value_at_once_is_overruled_seldom() -> None:
    """Two programs that put a value back would write for ever; kubectl is put back at once."""
    kube = MemoryKube()
    kube.now = "2026-01-02T03:00:00Z"
    kube.apply(_stateful_set())

    def scale(body: dict[str, Any]) -> None:
        body["spec"]["replicas"] += 1

    kube.now = "2026-01-02T03:00:02Z"
    kube.edit("StatefulSet", "quickstart-zookeeper", scale, manager="scaler")
    found = kube.find("StatefulSet", "quickstart-zookeeper")
    soon = compare(_stateful_set(), found, now="2026-01-02T03:00:04Z")
    assert (soon.reason, "scaler changed it at once" in soon.warning) == ("", True)
    assert compare(_stateful_set(), found, now="2026-01-02T03:05:02Z").reason
    kube.now = "2026-01-02T03:00:02Z"
    kube.edit("StatefulSet", "quickstart-zookeeper", scale, manager="kubectl-edit")
    found = kube.find("StatefulSet", "quickstart-zookeeper")
    assert compare(_stateful_set(), found, now=kube.now).reason == "spec.replicas was changed"


def test_merge_keys_are_those_of_kubernetes() -> None:
    """The table has every keyed list that a built manifest uses, with the keys of the schema."""
    definitions = openapi.definitions_of(openapi.NEWEST)
    for kind, names in {
        "core.v1.PodSpec": ("containers", "initContainers", "volumes", "topologySpreadConstraints"),
        "core.v1.Container": ("env", "ports", "volumeMounts"),
        "core.v1.ServiceSpec": ("ports",),
    }.items():
        properties = definitions[f"io.k8s.api.{kind}"]["properties"]
        for name in names:
            assert tuple(properties[name]["x-kubernetes-list-map-keys"]) in MERGE_KEYS[name]
