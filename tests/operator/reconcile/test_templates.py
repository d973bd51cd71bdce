"""Templates that the API server refuses: nothing of them is applied, and the rest goes on."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.pods import PodTemplate
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.reconciler import Key, reconcile
from barnabas_operator.reconcile.templates import explained
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

KEY = Key("default", "quickstart")
SET = "quickstart-broker"
REFUSAL = (
    f'PATCH /apis/apps/v1/x: StatefulSet.apps "{SET}" is invalid:'
    " spec.template.spec.containers[1].image: Required value"
)


def _cluster(**template: Any) -> dict[str, Any]:
    brokers = {"replicas": 1, "storage": {"size": "1Gi"}, "template": template}
    return examples.cluster(brokers=brokers)


def _conditions(kube: MemoryKube) -> dict[str, tuple[str, str]]:
    status = kube.find("KafkaCluster", "quickstart")["status"]
    return {each["type"]: (each["reason"], each["message"]) for each in status["conditions"]}


def _changed(cluster: dict[str, Any]) -> MemoryKube:
    """A cluster that runs, and then asks for something else."""
    kube = MemoryKube(examples.cluster())
    reconcile(KEY, context_on(kube))
    kube.settle()
    reconcile(KEY, context_on(kube))
    cluster["metadata"]["generation"] = 2
    kube.put(cluster)
    kube.writes.clear()
    return kube


def test_a_template_is_tried_before_anything_of_it_is_applied() -> None:
    """The pods that run and their settings stay; the field is named as the resource has it."""
    cluster = _cluster(sidecars=[{"name": "agent"}])
    cluster["spec"]["config"] = {"message.max.bytes": "2000"}
    cluster["spec"]["listeners"].append({"name": "more", "port": 9099})
    kube = _changed(cluster)
    kube.refuses[f"try StatefulSet {SET}"] = REFUSAL
    reconcile(KEY, context_on(kube))
    assert {"apply Service quickstart-bootstrap", "apply StatefulSet quickstart-zookeeper"} < {
        *kube.writes
    }
    assert not {f"apply StatefulSet {SET}", f"apply ConfigMap {SET}"} & {*kube.writes}
    assert _conditions(kube)["Stalled"] == (
        "InvalidTemplate", "spec.brokers.template: sidecars[0].image: Required value",
    )  # fmt: skip
    assert _conditions(kube)["Ready"][0] == "Ready"
    kube.refuses.clear()
    reconcile(KEY, context_on(kube))
    assert f"apply StatefulSet {SET}" in kube.writes
    assert "Stalled" not in _conditions(kube)


def test_nothing_is_taken_away_while_a_template_is_refused() -> None:
    """The pods that run, and any that follow, are those of before."""
    cluster = _cluster(sidecars=[{"name": "agent"}])
    cluster["spec"]["listeners"] = [{"name": "plain", "port": 9092}]
    kube = _changed(cluster)
    kube.refuses[f"try StatefulSet {SET}"] = REFUSAL
    before = set(kube.objects)
    reconcile(KEY, context_on(kube))
    assert before <= set(kube.objects)
    del kube.refuses[f"try StatefulSet {SET}"]
    reconcile(KEY, context_on(kube))
    assert before - set(kube.objects) == {("Service", "default", "quickstart-broker-0-external")}


def test_a_cluster_without_a_template_asks_once() -> None:
    """What is the operator's own need not be tried."""
    cluster = _cluster()
    cluster["spec"]["config"] = {"message.max.bytes": "2000"}
    kube = _changed(cluster)
    kube.requests.clear()
    reconcile(KEY, context_on(kube))
    assert not [request for request in kube.requests if request.startswith("try ")]


def test_a_template_is_refused_before_the_first_pod_exists() -> None:
    """The rest of the cluster is created meanwhile."""
    kube = MemoryKube(_cluster(sidecars=[{"name": "agent"}]))
    kube.refuses[f"try StatefulSet {SET}"] = REFUSAL
    reconcile(KEY, context_on(kube))
    assert ("StatefulSet", "default", "quickstart-zookeeper") in kube.objects
    assert ("StatefulSet", "default", SET) not in kube.objects
    assert ("ConfigMap", "default", SET) not in kube.objects


def test_a_webhook_that_knows_no_dry_run_does_not_stop_the_template() -> None:
    """It cannot be tried; what is wrong with it is found when it is applied."""
    kube = _changed(_cluster(labels={"team": "a"}))
    kube.refuses[f"try StatefulSet {SET}"] = 'admission webhook "w" does not support dry run'
    reconcile(KEY, context_on(kube))
    assert f"apply StatefulSet {SET}" in kube.writes


def test_an_api_server_that_is_busy_ends_the_pass() -> None:
    """It said nothing about the template."""
    kube = _changed(_cluster(labels={"team": "a"}))
    kube.fail(f"try StatefulSet {SET}", 500)
    with pytest.raises(KubeError):
        reconcile(KEY, context_on(kube))
    reconcile(KEY, context_on(kube))
    assert f"apply StatefulSet {SET}" in kube.writes


def test_another_program_s_additions_to_a_template_stay() -> None:
    """A sidecar of a webhook stays through a change of the template, and is no drift."""

    def inject(body: dict[str, Any]) -> None:
        if body["kind"] == "StatefulSet":
            containers = body["spec"]["template"]["spec"]["containers"]
            if all(each["name"] != "proxy" for each in containers):
                containers.append({"name": "proxy", "image": "proxy:1"})

    kube = _changed(_cluster(sidecars=[{"name": "agent", "image": "agent:1"}]))
    kube.webhooks.append(inject)
    reconcile(KEY, context_on(kube))
    template = kube.find("StatefulSet", SET)["spec"]["template"]["spec"]
    assert [each["name"] for each in template["containers"]] == ["broker", "agent", "proxy"]
    kube.writes.clear()
    reconcile(KEY, context_on(kube))
    assert not [write for write in kube.writes if write.startswith("apply StatefulSet")]


SEVERAL = (
    f'StatefulSet.apps "{SET}" is invalid: [spec.template.spec.volumes[2].name: Required value,'
    " spec.template.spec.containers[0].env[3].name: Required value]"
)
UNKNOWN = (
    "x: failed to create typed patch object (default/b; apps/v1, Kind=StatefulSet): errors:\n"
    "  .spec.template.spec.affinity.nodeAfinity: field not declared in schema"
)
ELSEWHERE = f'StatefulSet.apps "{SET}" is invalid: spec.template.spec.tolerations[0].operator: no'
MESSAGES = [
    (REFUSAL, "sidecars[0].image: Required value"),
    (SEVERAL, "[volumes.name: Required value, env[1].name: Required value]"),
    ('x: object (a): containers[name="agent"].tty: no', 'sidecars[name="agent"].tty: no'),
    ('x: object (a): containers[name="broker"].env[name="A"].value: no', 'env[name="A"].value: no'),
    (UNKNOWN, "affinity.nodeAfinity: field not declared in schema"),
    (ELSEWHERE, "tolerations[0].operator: no"),
    ("admission webhook denied the request: no", "admission webhook denied the request: no"),
]


@pytest.mark.parametrize(("message", "said"), MESSAGES)
def test_fields_are_named_as_the_resource_has_them(message: str, said: str) -> None:
    """The items of a template follow the operator's own, and are counted without these."""
    template = PodTemplate(sidecars=({"name": "agent"},), volumes=({"name": "A"},), env=({}, {}))
    pod = {
        "containers": [{"name": "broker", "env": [{}, {}, {}, {}]}, {"name": "agent"}],
        "volumes": [{"name": "config"}, {"name": "tmp"}, {"name": "A"}],
    }
    assert explained(message, pod, template) == said


def test_a_long_message_is_shortened() -> None:
    """A condition is read by people."""
    assert len(explained("x" * 5000, {"containers": [], "volumes": []}, PodTemplate())) == 600
