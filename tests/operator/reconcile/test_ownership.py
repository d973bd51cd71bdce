"""Objects of others are never taken over."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster, read_user
from barnabas_operator.reconcile.ownership import (
    ForeignObjectError,
    apply_owned,
    objection_to,
)
from barnabas_operator.reconcile.reconciler import Key, reconcile
from barnabas_operator.resources import objects
from barnabas_operator.resources.brokers import broker_services, broker_workload
from barnabas_operator.resources.user_certificate import user_certificate_secret
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

KEY = Key("default", "quickstart")
NAME = "quickstart-bootstrap"


def _service(**meta: Any) -> dict[str, Any]:
    spec = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}
    head = {"name": NAME, "namespace": "default", **meta}
    return {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": spec}


def _controlled_by(kind: str, name: str, uid: str) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": True},
    ]


@pytest.mark.parametrize(
    ("owners", "words"),
    [
        ([], "exists and no resource controls it"),
        (_controlled_by("Deployment", "web", "uid-web"), "exists and Deployment web controls it"),
        (
            _controlled_by("KafkaCluster", "quickstart", "uid-before"),
            "exists and an earlier KafkaCluster quickstart controls it (uid uid-before)",
        ),
    ],
)
def test_an_object_of_the_same_name_stays_as_it_is(owners: list[Any], words: str) -> None:
    """It is named in the status, the cluster's other objects are applied, nothing is written."""
    kube = MemoryKube(examples.cluster(), _service(ownerReferences=owners))
    before = kube.find("Service", NAME)
    for _ in range(2):
        reconcile(KEY, context_on(kube))
    assert kube.find("Service", NAME) == before
    assert f"apply Service {NAME}" not in kube.writes
    assert "apply StatefulSet quickstart-broker" in kube.writes
    conditions = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    (stalled,) = [each for each in conditions if each["type"] == "Stalled"]
    assert f"Service {NAME} {words}" in stalled["message"]


def test_an_orphan_of_ours_is_adopted() -> None:
    """`kubectl delete --cascade=orphan` leaves objects without owners; a new resource has them."""
    kube = MemoryKube(examples.cluster())
    reconcile(KEY, context_on(kube))
    for body in list(kube.objects.values()):
        kube.edit(body["kind"], body["metadata"]["name"], _without_owner, manager="gc")
    document = examples.cluster()
    document["metadata"]["uid"] = "uid-new"
    kube.remove("KafkaCluster", "quickstart")
    kube.put(document)
    reconcile(KEY, context_on(kube))
    (owner,) = kube.find("StatefulSet", "quickstart-broker")["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-new"


def test_an_orphan_of_another_resource_stays_as_it_is() -> None:
    """A user may have the name of the Secret in which an authority of the cluster is."""
    document = examples.cluster(insecure=False, listeners=None)
    kube = MemoryKube(document)
    for _ in range(2):
        reconcile(KEY, context_on(kube))
    kube.edit("Secret", "quickstart-cluster-ca", _without_owner, manager="gc")
    before = kube.find("Secret", "quickstart-cluster-ca")
    user = read_user(examples.user("quickstart-cluster-ca"))
    body = user_certificate_secret(user.meta, cluster="quickstart", data={})
    assert "no resource controls it" in objection_to(before, body)


def _without_owner(body: dict[str, Any]) -> None:
    body["metadata"].pop("ownerReferences", None)


def test_an_object_that_is_created_meanwhile_is_a_conflict() -> None:
    """Between the look and the apply: without force the API server refuses it."""

    class Race(MemoryKube):
        def get(self, kind: Any, namespace: str, name: str) -> None:
            self.put(_service())

    meta = read_cluster(examples.cluster()).meta
    body = objects.document("v1", "Service", NAME, owner=meta, labels={})
    body["spec"] = {"selector": {"ours": "x"}, "ports": [{"name": "plain", "port": 9092}]}
    kube = Race()
    with pytest.raises(Exception, match="conflict") as raised:
        apply_owned(kube, objects.owned(body, owner=meta, kind="KafkaCluster"))
    assert not isinstance(raised.value, ForeignObjectError)
    assert kube.find("Service", NAME)["spec"]["selector"] == {"app": "web"}


OLD = {"app.kubernetes.io/instance": "quickstart", "app.kubernetes.io/component": "broker"}


def _from_an_earlier_version() -> MemoryKube:
    """A cluster whose StatefulSet and claims have the labels of before."""
    kube = MemoryKube(examples.cluster())
    cluster = read_cluster(kube.find("KafkaCluster", "quickstart"))
    workload = broker_workload(cluster, image="b:1", node_ports={}, selector=OLD)
    for body in (*broker_services(cluster, selector=OLD), *workload):
        if body["kind"] == "StatefulSet":
            template = body["spec"]["template"]["metadata"]
            template["labels"] = dict(OLD)
            body["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"] = dict(OLD)
        kube.apply(body)
    kube.settle()
    return kube


def test_selectors_of_a_stateful_set_that_exists_stay() -> None:
    """They cannot change; Services and budget go with them, so that no pod loses its Service."""
    kube = _from_an_earlier_version()
    reconcile(KEY, context_on(kube))
    conditions = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    assert "Stalled" not in [each["type"] for each in conditions]
    for name in ("quickstart-bootstrap", "quickstart-broker-nodes"):
        assert kube.find("Service", name)["spec"]["selector"] == OLD
    budget = kube.find("PodDisruptionBudget", "quickstart-broker")["spec"]
    assert budget["selector"]["matchLabels"] == OLD
    template = kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]["metadata"]
    assert template["labels"]["barnabas.io/cluster"] == "quickstart"
    assert kube.find("KafkaCluster", "quickstart")["status"]["brokers"]["ready"] == 1


def test_pods_that_a_deleted_stateful_set_left_behind_stay_selected() -> None:
    """`kubectl delete --cascade=orphan` keeps their labels: the budget says which."""
    kube = _from_an_earlier_version()
    reconcile(KEY, context_on(kube))
    kube.remove("StatefulSet", "quickstart-broker")
    reconcile(KEY, context_on(kube))
    for name in ("quickstart-bootstrap", "quickstart-broker-nodes"):
        assert kube.find("Service", name)["spec"]["selector"] == OLD
    again = kube.find("StatefulSet", "quickstart-broker")["spec"]
    assert again["selector"]["matchLabels"] == OLD
    assert OLD.items() <= again["template"]["metadata"]["labels"].items()


def test_claims_lose_the_label_by_which_tools_prune() -> None:
    """Retained claims have no owner: a tool that tracks by the label would delete them."""
    kube = _from_an_earlier_version()
    for _ in range(2):
        reconcile(KEY, context_on(kube))
        kube.settle()
    for name in ("data-quickstart-broker-0", "data-quickstart-zookeeper-0"):
        labels = kube.find("PersistentVolumeClaim", name)["metadata"]["labels"]
        assert "app.kubernetes.io/instance" not in labels
        assert labels["barnabas.io/cluster"] == "quickstart"
    assert kube.writes.count("patch PersistentVolumeClaim data-quickstart-broker-0") == 1


def test_an_object_with_our_labels_that_another_controls_is_not_looked_at() -> None:
    """Labels can be set by anybody: its selector must not become that of our Services."""
    kube = MemoryKube(examples.cluster())
    cluster = read_cluster(kube.find("KafkaCluster", "quickstart"))
    body = broker_workload(cluster, image="b:1", node_ports={}, selector=OLD)[-1]
    body["metadata"]["ownerReferences"] = _controlled_by("Database", "db", "uid-db")
    body["spec"]["template"]["metadata"]["labels"] = dict(OLD)
    kube.put(body)
    reconcile(KEY, context_on(kube))
    selector = kube.find("Service", "quickstart-bootstrap")["spec"]["selector"]
    assert selector == {"barnabas.io/cluster": "quickstart", "barnabas.io/component": "broker"}
