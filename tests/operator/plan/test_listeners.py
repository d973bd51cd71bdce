"""Every field of a listener does something for its type, or is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pytest

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.declarations import fields_of
from barnabas_operator.api.listeners import Listener, ListenerConfiguration, ListenerType
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.api.schemas import schema_of
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.listeners import listener_problems
from barnabas_operator.resources import listeners as routing
from barnabas_operator.resources.brokers import broker_config, broker_services, broker_workload
from tests.operator import examples

Document = dict[str, Any]

NAMES = ClusterNames("quickstart", "default")
PLAIN = {"name": "plain", "port": 9092}
ROUTED: Document = {
    "tls": {},
    "configuration": {"hostTemplate": "b{broker}.e", "bootstrap": {"host": "e"}},
}
# The least that each type needs.
BASES: dict[str, Document] = {
    "internal": {},
    "cluster-ip": {},
    "nodeport": {"nodePort": 31000},
    "loadbalancer": {},
    "ingress": ROUTED,
    "tlsroute": {
        "tls": {},
        "configuration": {**ROUTED["configuration"], "gateway": {"name": "g"}},
    },
}
# Another value of each field that can be given.
SAMPLES: dict[str, Any] = {
    "name": "other",
    "port": 9095,
    "nodePort": 32000,
    "advertisedHost": "own.example",
    "tls": {"brokerCertChainAndKey": {"secretName": "own"}},
    "authentication": {"type": "scram-sha-512"},
    "configuration.bootstrap.host": "other.example",
    "configuration.bootstrap.annotations": {"a": "b"},
    "configuration.bootstrap.labels": {"a": "b"},
    "configuration.brokers[].host": "other.example",
    "configuration.brokers[].advertisedHost": "other.example",
    "configuration.brokers[].advertisedPort": 19094,
    "configuration.brokers[].nodePort": 32001,
    "configuration.brokers[].annotations": {"a": "b"},
    "configuration.brokers[].labels": {"a": "b"},
    "configuration.hostTemplate": "other{broker}.e",
    "configuration.advertisedHostTemplate": "advertised{broker}.e",
    "configuration.advertisedPortTemplate": "{9100+broker}",
    "configuration.annotations": {"a": "b{broker}"},
    "configuration.labels": {"a": "b{broker}"},
    "configuration.loadBalancerSourceRanges": ["10.0.0.0/8"],
    "configuration.loadBalancerClass": "inside",
    "configuration.externalTrafficPolicy": "Cluster",
    "configuration.ingressClassName": "nginx",
    "configuration.gateway.name": "other",
    "configuration.gateway.namespace": "other",
    "configuration.gateway.sectionName": "other",
}
# What is everywhere chosen by other fields, or decides itself about all others.
CHOSEN = {"type", "configuration.brokers[].broker"}


def _fields(declaring: Any, path: str = "") -> Iterator[str]:
    """The path of each field of a listener; tls and authentication are one each."""
    for field in fields_of(declaring):
        name = f"{path}{field.name}"
        hint: Any = ListenerConfiguration if name == "configuration" else field.hint
        items = name == "configuration.brokers"
        if items:
            (hint, _) = hint.__args__
        if is_dataclass(hint) and name not in ("tls", "authentication"):
            yield from _fields(hint, f"{name}[]." if items else f"{name}.")
        else:
            yield name


def _with(type_: str, path: str | None = None) -> Any:
    """A cluster of two brokers with a listener of a type, and a field of it."""
    listener: Document = {"name": "out", "port": 9094, "type": type_, **copy.deepcopy(BASES[type_])}
    if path is not None:
        place, sample = listener, SAMPLES[path]
        *before, last = path.split(".")
        for part in before:
            if part.endswith("[]"):
                place[part.removesuffix("[]")] = [{"broker": 1}]
                place = place[part.removesuffix("[]")][0]
            else:
                place = place.setdefault(part, {"name": "g"} if part == "gateway" else {})
        place[last] = sample
    brokers = {"replicas": 2, "storage": {"size": "1Gi"}}
    return read_cluster(examples.cluster(listeners=[PLAIN, listener], brokers=brokers))


def _rendered(cluster: Any) -> list[Any]:
    """All that becomes of a listener: objects, settings, and what clients are told."""
    balancers = {
        ("Service", f"quickstart-out-{name}"): {
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        }
        for name in ("bootstrap", "0", "1")
    }
    listener = cluster.body.spec.listeners[1]
    outside = listener.type in routing.OWN_OBJECTS
    told = routing.bootstrap_servers(listener, NAMES, balancers) if outside else ""
    return [
        broker_services(cluster),
        broker_workload(cluster, image="i", node_ports={}, found=balancers),
        broker_config(cluster),
        told,
    ]


def test_every_field_of_a_listener_has_a_sample() -> None:
    """A new field is in the table below from its first day."""
    assert set(_fields(Listener)) - CHOSEN == SAMPLES.keys()
    assert {each.value for each in ListenerType} == BASES.keys()


@pytest.mark.parametrize("type_", BASES)
@pytest.mark.parametrize("path", SAMPLES)
def test_a_field_does_something_for_a_type_or_is_refused(path: str, type_: str) -> None:
    """What is accepted is seen in what is rendered; what is not is named with its type."""
    cluster = _with(type_, path)
    problems = list(listener_problems(cluster.body))
    if not problems:
        assert _rendered(cluster) != _rendered(_with(type_))
        return
    for problem in problems:
        assert problem.startswith("spec.listeners: out: ")
        assert problem.endswith(f"remove it, or change the type; this one is {type_}")
        named = problem.removeprefix("spec.listeners: out: ").partition(" is for listeners of")[0]
        assert path.startswith(named)
        # The API server says the same by a rule of the definition.
        messages = [each["message"] for each in _rules()]
        assert any(each.startswith(f"{named} is for listeners of type") for each in messages)


@pytest.mark.parametrize("type_", BASES)
def test_the_least_of_each_type_is_accepted(type_: str) -> None:
    """Otherwise the table would show nothing."""
    assert list(listener_problems(_with(type_).body)) == []


def test_all_mistakes_are_named_at_once() -> None:
    """Of all listeners, and of each all fields."""
    out = {"name": "out", "port": 9094, "type": "cluster-ip", "nodePort": 31000}
    out["configuration"] = {"gateway": {"name": "g"}, "brokers": [{"broker": 0, "host": "h"}]}
    internal = {"name": "in", "port": 9095, "advertisedHost": "h"}
    cluster = read_cluster(examples.cluster(listeners=[PLAIN, out, internal]))
    found = [each.partition(" is for")[0] for each in listener_problems(cluster.body)]
    assert found == [
        "spec.listeners: out: nodePort",
        "spec.listeners: out: configuration.gateway",
        "spec.listeners: out: configuration.brokers[].host",
        "spec.listeners: in: advertisedHost",
    ]


def _on_nodes(*configurations: Document, **fields: Any) -> list[str]:
    """The problems of listeners of type nodeport, which share a Service for each broker."""
    listeners = [
        {"name": f"out{n}", "port": 9100 + n, "type": "nodeport", "nodePort": 31000 + 100 * n,
         "configuration": each, **fields}
        for n, each in enumerate(configurations)
    ]  # fmt: skip
    brokers = {"replicas": 2, "storage": {"size": "1Gi"}}
    document = examples.cluster(listeners=[PLAIN, *listeners], brokers=brokers)
    return list(listener_problems(read_cluster(document).body))


def test_listeners_on_nodes_have_one_traffic_policy() -> None:
    """A Service has one: the other listener's would be lost."""
    local, cluster = ({"externalTrafficPolicy": each} for each in ("Local", "Cluster"))
    (problem,) = _on_nodes(local, cluster)
    assert problem.startswith("spec.listeners: out0, out1: configuration.externalTrafficPolicy")
    assert "they share a broker's Service" in problem
    assert _on_nodes(cluster, cluster) == []
    assert _on_nodes(cluster, {}) == []
    rule = schema_of(KafkaCluster)["properties"]["spec"]["properties"]["listeners"]
    messages = [each["message"] for each in rule["x-kubernetes-validations"]]
    assert any(each.startswith("configuration.externalTrafficPolicy must") for each in messages)


@pytest.mark.parametrize("what", ["labels", "annotations"])
def test_listeners_on_nodes_have_one_value_of_a_key(what: str) -> None:
    """For each broker; what is the same on both, or differs by broker alone, is no conflict."""
    one = {what: {"a": "broker-{broker}", "only": "one"}}
    assert _on_nodes(one, one) == []
    other = {what: {"a": "broker-0"}}
    (problem,) = _on_nodes(one, other)
    assert problem.startswith(f"spec.listeners: configuration.{what}: out0 and out1 have different")
    assert "values of a for broker 1" in problem
    own = {"brokers": [{"broker": 1, what: {"a": "broker-1"}}], **other}
    assert _on_nodes(one, own) == []


def test_a_host_of_all_brokers_and_one_of_each_are_two() -> None:
    """The template would have no effect."""
    given = {"advertisedHostTemplate": "b{broker}.e"}
    (problem,) = _on_nodes(given, advertisedHost="h")
    assert "advertisedHost and configuration.advertisedHostTemplate: give one" in problem


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"labels": {"app.kubernetes.io/name": "x"}}, "configuration.labels: app.kubernetes"),
        ({"labels": {"barnabas.io/cluster": "x"}}, "configuration.labels: barnabas.io/cluster"),
        ({"annotations": {"barnabas.io/x": "x"}}, "configuration.annotations: barnabas.io/x"),
        (
            {"bootstrap": {"labels": {"barnabas.io/x": "x"}}},
            "configuration.bootstrap.labels: barnabas.io/x",
        ),
        (
            {"brokers": [{"broker": 1, "labels": {"barnabas.io/x": "x"}}]},
            "configuration.brokers: 1.labels: barnabas.io/x",
        ),
    ],
)
def test_labels_of_the_operator_are_refused(given: Document, path: str) -> None:
    """By them it finds what is its own: another value would be overwritten without a word."""
    out = {"name": "out", "port": 9094, "type": "loadbalancer", "configuration": given}
    cluster = read_cluster(examples.cluster(listeners=[PLAIN, out]))
    (problem,) = listener_problems(cluster.body)
    assert problem.startswith(f"spec.listeners: out: {path}")
    assert problem.endswith("is the operator's; remove it")


def _rules() -> list[dict[str, str]]:
    listeners = schema_of(KafkaCluster)["properties"]["spec"]["properties"]["listeners"]
    rules: list[dict[str, str]] = listeners["items"]["x-kubernetes-validations"]
    return rules
