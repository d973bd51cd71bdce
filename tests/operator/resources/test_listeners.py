"""Listeners with objects of their own: golden manifests, and the addresses that follow."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.names import ClusterNames
from barnabas_operator.resources.brokers import (
    advertised_listeners,
    broker_services,
    broker_workload,
)
from barnabas_operator.resources.listeners import bootstrap_servers, needs_files, pending
from tests.operator import examples
from tests.operator.resources.golden import compare

NAMES = ClusterNames("quickstart", "default")
PLAIN = {"name": "plain", "port": 9092}
DNS = "external-dns.alpha.kubernetes.io/hostname"
HOSTS = {
    "hostTemplate": "b{broker}.kafka.example",
    "bootstrap": {"host": "kafka.example", "annotations": {DNS: "kafka.example"}},
    "annotations": {DNS: "b{broker}.kafka.example"},
    "labels": {"team": "orders"},
}
EACH: dict[str, dict[str, Any]] = {
    "loadbalancer": {
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "loadBalancerClass": "example.com/inside",
        "externalTrafficPolicy": "Local",
        "bootstrap": {"annotations": {DNS: "kafka.example"}, "labels": {"a": "b"}},
        "annotations": {DNS: "b{broker}.kafka.example"},
        "brokers": [{"broker": 1, "annotations": {"own": "yes"}, "labels": {"one": "1"}}],
    },
    "cluster-ip": {"annotations": {"note": "broker {broker}"}},
    "ingress": {**HOSTS, "ingressClassName": "nginx"},
    "tlsroute": {**HOSTS, "gateway": {"name": "edge", "namespace": "gw", "sectionName": "kafka"}},
}


def _cluster(type_: str, configuration: dict[str, Any], **listener: Any) -> Any:
    outside = {"name": "out", "port": 9094, "type": type_, "configuration": configuration}
    if type_ in ("ingress", "tlsroute"):
        outside["tls"] = {}
    brokers = {"replicas": 2, "storage": {"size": "1Gi"}}
    return read_cluster(
        examples.cluster(listeners=[PLAIN, {**outside, **listener}], brokers=brokers)
    )


def _balancer(name: str, **ingress: str) -> dict[tuple[str, str], Any]:
    return {("Service", name): {"status": {"loadBalancer": {"ingress": [ingress]}}}}


@pytest.mark.parametrize("type_", EACH)
def test_objects_of_each_type(type_: str) -> None:
    """Golden: what is made for a client's first connection, and for each broker."""
    compare(f"listener-{type_}", broker_services(_cluster(type_, EACH[type_]))[2:])


def test_a_nodeport_listener_with_all_that_can_be_said() -> None:
    """Golden: the Services of the nodes' ports."""
    configuration = {
        "externalTrafficPolicy": "Cluster",
        "annotations": {DNS: "b{broker}.kafka.example"},
        "labels": {"team": "orders"},
        "brokers": [{"broker": 1, "nodePort": 31999, "advertisedPort": 443}],
    }
    cluster = _cluster("nodeport", configuration, nodePort=31000)
    compare("listener-nodeport", broker_services(cluster)[2:])
    reported = [advertised_listeners(cluster, NAMES, {}, broker=n).split(",")[1] for n in (0, 1)]
    assert reported == ["OUT://{HOST_IP}:31000", "OUT://{HOST_IP}:443"]


def test_addresses_that_kubernetes_gives_are_in_a_file_for_each_broker() -> None:
    """Golden: the pods' template does not change when an address does."""
    cluster = _cluster("loadbalancer", {})
    found = _balancer("quickstart-out-0", ip="192.0.2.1")
    made = broker_workload(cluster, image="i", node_ports={}, found=found)
    compare("broker-addresses", [made[1]])
    again = broker_workload(cluster, image="i", node_ports={})
    assert again[-1] == made[-1]
    command = made[-1]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[-2:] == [
        "--set-file", "advertised.listeners=/etc/barnabas-addresses/{POD_INDEX}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "configuration", "reported"),
    [
        ("cluster-ip", {}, "OUT://quickstart-out-{POD_INDEX}.default.svc:9094"),
        ("ingress", HOSTS, "OUT://b{POD_INDEX}.kafka.example:443"),
        ("tlsroute", HOSTS, "OUT://b{POD_INDEX}.kafka.example:443"),
        (
            "loadbalancer",
            {"advertisedHostTemplate": "b{broker}.e", "advertisedPortTemplate": "{9100+broker}"},
            "OUT://b{POD_INDEX}.e:{9100+POD_INDEX}",
        ),
        ("nodeport", {"advertisedPortTemplate": "443"}, "OUT://{HOST_IP}:443"),
    ],
)
def test_addresses_derived_from_ids_are_in_the_template(
    type_: str, configuration: dict[str, Any], reported: str
) -> None:
    """All brokers have one template, and no file."""
    cluster = _cluster(type_, configuration)
    assert not needs_files(cluster.body.spec.listeners)
    assert advertised_listeners(cluster, NAMES, {"out": 31000}).split(",")[1] == reported


def test_overrides_count_before_templates_and_those_before_the_status() -> None:
    """By broker; a listener without an address is not advertised, and the others are."""
    found = _balancer("quickstart-out-0", hostname="lb.example") | _balancer("quickstart-out-1")
    plain = _cluster("loadbalancer", {})
    assert advertised_listeners(plain, NAMES, {}, broker=0, found=found).endswith(
        ",OUT://lb.example:9094"
    )
    assert "OUT" not in advertised_listeners(plain, NAMES, {}, broker=1, found=found)
    own = {"broker": 0, "advertisedHost": "own.example", "advertisedPort": 1}
    with_template = {"advertisedHostTemplate": "b{broker}.e", "brokers": [own]}
    cluster = _cluster("loadbalancer", with_template)
    reported = [advertised_listeners(cluster, NAMES, {}, broker=n).split(",")[1] for n in (0, 1)]
    assert reported == ["OUT://own.example:1", "OUT://b1.e:9094"]


@pytest.mark.parametrize(
    ("type_", "configuration", "servers"),
    [
        ("cluster-ip", {}, "quickstart-out-bootstrap.default.svc:9094"),
        ("ingress", HOSTS, "kafka.example:443"),
        ("tlsroute", {**HOSTS, "advertisedPortTemplate": "8443"}, "kafka.example:8443"),
        ("ingress", {**HOSTS, "advertisedPortTemplate": "{9100+broker}"}, "kafka.example:443"),
        ("loadbalancer", {"advertisedPortTemplate": "8443"}, "192.0.2.9:9094"),
        ("loadbalancer", {}, "192.0.2.9:9094"),
        ("loadbalancer", {"bootstrap": {"host": "kafka.example"}}, "kafka.example:9094"),
    ],
)
def test_bootstrap_addresses(type_: str, configuration: dict[str, Any], servers: str) -> None:
    """A name that was given counts before the address of a load balancer."""
    listener = _cluster(type_, configuration).body.spec.listeners[1]
    found = _balancer("quickstart-out-bootstrap", ip="192.0.2.9")
    assert bootstrap_servers(listener, NAMES, found) == servers
    if not configuration and type_ == "loadbalancer":
        assert bootstrap_servers(listener, NAMES, {}) == ""


def test_listeners_without_an_address_are_named() -> None:
    """One object and how many more; a route is there once its Gateway accepts it."""
    balancers = _balancer("quickstart-out-bootstrap", ip="1") | _balancer(
        "quickstart-out-0", ip="2"
    )
    (text,) = pending(_cluster("loadbalancer", {}), balancers)
    lacks = "has no address of a load balancer yet"
    assert text == f"listener out: Service quickstart-out-1 {lacks}"
    (text,) = pending(_cluster("ingress", HOSTS), balancers)
    assert text.startswith("listener out: Ingress quickstart-out-bootstrap and 2 more has no")
    accepted = {"status": {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]}}
    names = ("bootstrap", "0", "1")
    routes = {("TLSRoute", f"quickstart-out-{name}"): accepted for name in names}
    assert pending(_cluster("tlsroute", HOSTS), routes) == []
    assert pending(_cluster("cluster-ip", {}), {}) == []
