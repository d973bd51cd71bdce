"""Pod templates: what a resource adds, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.resources import brokers, zookeeper
from barnabas_operator.resources.brokers import broker_workload
from barnabas_operator.resources.zookeeper import zookeeper_objects
from tests.operator import examples
from tests.operator.resources.golden import compare

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
FULL: dict[str, Any] = {
    "labels": {"team": "orders"},
    "annotations": {"sidecar.istio.io/inject": "false", "prometheus.io/scrape": "false"},
    "nodeSelector": {"disk": "nvme"},
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": {"heavy": "yes"}}}
            ]
        }
    },
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "priorityClassName": "kafka",
    "serviceAccountName": "brokers",
    "imagePullSecrets": [{"name": "registry"}],
    "terminationGracePeriodSeconds": 600,
    "env": [{"name": "KAFKA_OPTS", "value": "-Djava.security.auth.login.config=/etc/login/jaas"}],
    "volumes": [{"name": "login", "secret": {"secretName": "login"}}],
    "volumeMounts": [{"name": "login", "mountPath": "/etc/login", "readOnly": True}],
    "sidecars": [
        {
            "name": "agent",
            "image": "agent:1",
            "ports": [{"name": "agent", "containerPort": 7000}],
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        }
    ],
    "startupProbe": {"failureThreshold": 1000},
    "livenessProbe": {"periodSeconds": 20},
    "readinessProbe": {"timeoutSeconds": 9},
}


def _cluster(template: dict[str, Any], **spec: Any) -> Any:
    storage = {"replicas": 1, "storage": {"size": "1Gi"}, "template": template}
    return read_cluster(examples.cluster(**{"brokers": storage, "zookeeper": storage, **spec}))


def _pod(cluster: Any) -> Any:
    return broker_workload(cluster, image="i", node_ports={})[-1]["spec"]["template"]["spec"]


def test_everything_that_a_template_can_have() -> None:
    """Golden: brokers and members."""
    made = _cluster(FULL)
    sets = [
        broker_workload(made, image="barnabas-broker:1", node_ports={})[-1],
        zookeeper_objects(made, image="barnabas-zookeeper:1")[-1],
    ]
    compare("pod-templates", sets)


def test_a_production_cluster_spreads_over_nodes_and_zones() -> None:
    """Golden: no two pods of a kind on one node, as far as there are others."""
    made = _cluster({}, profile="production")
    sets = [
        broker_workload(made, image="barnabas-broker:1", node_ports={})[-1],
        zookeeper_objects(made, image="barnabas-zookeeper:1")[-1],
    ]
    compare("production", sets)


def test_a_hard_constraint_takes_the_place_of_the_soft_one_of_a_rack() -> None:
    """Both would be valid, and the soft one would say nothing."""
    template = {"topologySpreadConstraints": FULL["topologySpreadConstraints"]}
    plain = {"replicas": 1, "storage": {"size": "1Gi"}, "rack": {"topologyKey": ZONE}}
    for each, whens in (({}, ["ScheduleAnyway"]), (template, ["DoNotSchedule"])):
        pod = _pod(_cluster({}, brokers={**plain, "template": each}))
        constraints = pod["topologySpreadConstraints"]
        assert [one["whenUnsatisfiable"] for one in constraints] == whens
        assert constraints[0]["labelSelector"]["matchLabels"]["barnabas.io/component"] == "broker"


def test_a_selector_of_ones_own_stays() -> None:
    """Other pods than these may be meant."""
    mine = {"maxSkew": 2, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}}}  # fmt: skip
    pod = _pod(_cluster({"topologySpreadConstraints": [mine]}))
    assert pod["topologySpreadConstraints"] == [mine]


def test_a_sidecar_may_ask_for_privileges_by_name() -> None:
    """What it does not say is as restricted as it can be."""
    sidecar = {"name": "a", "image": "a:1", "securityContext": {"runAsUser": 7}}
    made = _pod(_cluster({"sidecars": [sidecar]}))["containers"][1]
    assert made["securityContext"] == {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsUser": 7,
    }  # fmt: skip


CONFLICTS: list[tuple[dict[str, Any], str]] = [
    ({"labels": {"app.kubernetes.io/name": "x"}}, "labels: app.kubernetes.io/name"),
    ({"labels": {"barnabas.io/new": "x"}}, "labels: barnabas.io/new"),
    ({"labels": {"apps.kubernetes.io/pod-index": "9"}}, "labels: apps.kubernetes.io/pod-index"),
    ({"annotations": {"barnabas.io/rack": "a"}}, "annotations: barnabas.io/rack"),
    ({"env": [{"name": "POD_INDEX", "value": "9"}]}, "env[0].name: POD_INDEX"),
    ({"env": [{"value": "9"}]}, "env[0].name: is missing"),
    ({"env": [{"name": "A"}, {"name": "A"}]}, "env[1].name: A is there twice"),
    ({"volumes": [{"name": "data", "emptyDir": {}}]}, "volumes[0].name: data"),
    ({"volumes": [{"name": "tmp", "emptyDir": {}}]}, "volumes[0].name: tmp"),
    (
        {"volumeMounts": [{"name": "x", "mountPath": "/var/lib/barnabas/data"}]},
        "volumeMounts[0].mountPath: /var/lib/barnabas/data lies in or around /var/lib/barnabas",
    ),
    *(
        (
            {"volumeMounts": [{"name": "x", "mountPath": path}]},
            f"volumeMounts[0].mountPath: {path} lies in or around /var/lib/barnabas",
        )
        for path in ("var/lib/barnabas", "//var/lib/barnabas", "/srv/../var/lib/./barnabas/data")
    ),
    (
        {"volumeMounts": [{"name": "x", "mountPath": "/etc"}]},
        "volumeMounts[0].mountPath: /etc lies in or around /etc/barnabas",
    ),
    ({"volumeMounts": [{"name": "x"}]}, "volumeMounts[0].mountPath: is missing"),
    ({"sidecars": [{"name": "broker"}]}, "sidecars[0].name: broker"),
    ({"sidecars": [{"image": "a"}]}, "sidecars[0].name: is missing"),
    (
        {"sidecars": [{"name": "a", "ports": [{"containerPort": 9092}]}]},
        "sidecars[0].ports[0].containerPort: 9092 is the port plain",
    ),
    (
        {"sidecars": [{"name": "a", "ports": [{"containerPort": 1, "name": "metrics"}]}]},
        "sidecars[0].ports[0].name: metrics",
    ),
    (
        {"sidecars": [{"name": "a", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]},
        "sidecars[0].volumeMounts[0]: data is the operator's; mount it with readOnly: true",
    ),
]


@pytest.mark.parametrize(("template", "said"), CONFLICTS, ids=lambda each: str(each)[:40])
def test_templates_cannot_replace_the_operators_fields(template: dict[str, Any], said: str) -> None:
    """Pods would be lost from sight, brokers read another's settings, or two write one disk."""
    (found,) = brokers.template_conflicts(_cluster(template))
    assert found.startswith(f"spec.brokers.template.{said}")


def test_all_mistakes_of_both_templates_are_found() -> None:
    """One edit mends them."""
    wrong = _cluster({
        "labels": {"barnabas.io/cluster": "other"},
        "env": [{"name": "POD_NAME", "value": "x"}],
        "sidecars": [{"name": "zookeeper"}, {"name": "broker"}],
    })  # fmt: skip
    assert len(brokers.template_conflicts(wrong)) == 3
    assert len(zookeeper.template_conflicts(wrong)) == 3
    assert brokers.template_conflicts(_cluster(FULL)) == []
    assert zookeeper.template_conflicts(_cluster(FULL)) == []


def test_parts_that_are_no_objects_are_left_to_the_api_server() -> None:
    """It names the field; nothing is raised here."""
    odd = _cluster({"sidecars": [{"name": "a", "ports": "all", "volumeMounts": [1, {}]}]})
    assert brokers.template_conflicts(odd) == []
    assert _pod(odd)["containers"][1]["name"] == "a"


@pytest.mark.parametrize(
    "template",
    [
        {"sidecars": [{"name": "a", "securityContext": "privileged"}]},
        {"sidecars": [{"name": "a", "ports": [{"containerPort": {}, "name": []}]}]},
        {"sidecars": [{"name": "a", "volumeMounts": [{"name": ["data"]}]}]},
        {"topologySpreadConstraints": [{"topologyKey": ["zone"], "labelSelector": "x"}]},
    ],
)
def test_values_of_another_type_are_left_to_the_api_server(template: dict[str, Any]) -> None:
    """It says which field it is; the operator's pass goes on to the next thing."""
    cluster = _cluster(template)
    assert brokers.template_conflicts(cluster) == []
    assert _pod(cluster)["containers"]
