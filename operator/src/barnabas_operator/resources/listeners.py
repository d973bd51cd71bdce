"""Listeners with objects of their own, and what brokers advertise of them.

A Service for each broker and one for a client's first connection; each has an Ingress or a TLSRoute
where connections are distinguished by host.

An address that Kubernetes gives (of a load balancer) may come late, or change. So what a broker
advertises is then in a file of its own, which the template of the pods does not depend on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import Listener, ListenerType, filled
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.writing import to_json
from barnabas_operator.names import ClusterNames
from barnabas_operator.resources import objects
from barnabas_operator.resources.objects import Document

Object = Mapping[str, Any]
# By kind and name, as they were observed.
Objects = Mapping[tuple[str, str], Object]

# Types whose objects are made here; nodeport has one Service for all its listeners of a broker.
ROUTED: Final = (ListenerType.INGRESS, ListenerType.TLSROUTE)
OWN_OBJECTS: Final = (ListenerType.LOADBALANCER, ListenerType.CLUSTER_IP, *ROUTED)
# The kinds that are listed only where a listener has, or had, the type.
KIND_OF: Final[Mapping[str, str]] = {
    ListenerType.INGRESS: "Ingress",
    ListenerType.TLSROUTE: "TLSRoute",
}
HTTPS: Final = 443
COMPONENT: Final = "broker"
BACKEND: Final = "kafka"
# Annotations by which the common controllers pass TLS through to the broker.
PASSTHROUGH: Final = {
    "nginx.ingress.kubernetes.io/ssl-passthrough": "true",
    "ingress.kubernetes.io/ssl-passthrough": "true",
    "route.openshift.io/termination": "passthrough",
}
# Filled in by the broker, from its pod's environment.
INDEX: Final = "{POD_INDEX}"


def listener_objects(
    cluster: Resource[KafkaCluster], *, selector: Mapping[str, str]
) -> list[Document]:
    """All objects of these listeners, without their owner."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    return [
        body
        for listener in cluster.body.spec.listeners
        if listener.type in OWN_OBJECTS
        for body in _of_listener(cluster, listener, names, selector)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One object to be: its name, whose pods it leads to, its host, and what a user adds to it."""

    name: str
    selector: Mapping[str, str]
    host: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def _of_listener(
    cluster: Resource[KafkaCluster],
    listener: Listener,
    names: ClusterNames,
    selector: Mapping[str, str],
) -> Iterator[Document]:
    for place in _places(cluster, listener, names, selector):
        yield _service(cluster, listener, names, place)
        if listener.type is ListenerType.INGRESS:
            yield _ingress(cluster, listener, names, place)
        elif listener.type is ListenerType.TLSROUTE:
            yield _tls_route(cluster, listener, names, place)


def _places(
    cluster: Resource[KafkaCluster],
    listener: Listener,
    names: ClusterNames,
    selector: Mapping[str, str],
) -> Iterator[_Place]:
    given = listener.configuration
    bootstrap = given.bootstrap
    yield _Place(
        name=names.listener_bootstrap(listener.name),
        selector=selector,
        host=(bootstrap.host if bootstrap else None) or "",
        labels=bootstrap.labels if bootstrap else {},
        annotations=bootstrap.annotations if bootstrap else {},
    )
    for ordinal in range(cluster.body.spec.brokers.replicas):
        pod = {"statefulset.kubernetes.io/pod-name": f"{names.broker}-{ordinal}"}
        own = given.of_broker(ordinal)
        yield _Place(
            name=names.listener_broker(listener.name, ordinal),
            selector={**selector, **pod},
            host=own.host or filled(given.host_template or "", ordinal),
            labels={**_filled(given.labels, ordinal), **own.labels},
            annotations={**_filled(given.annotations, ordinal), **own.annotations},
        )


def _filled(values: Mapping[str, str], ordinal: int) -> dict[str, str]:
    return {name: filled(value, ordinal) for name, value in values.items()}


def _head(
    cluster: Resource[KafkaCluster],
    api_version: str,
    kind: str,
    names: ClusterNames,
    place: _Place,
) -> Document:
    body = objects.document(
        api_version, kind, place.name, owner=cluster.meta,
        labels={**place.labels, **names.labels(COMPONENT)},
    )  # fmt: skip
    if place.annotations:
        body["metadata"]["annotations"] = dict(place.annotations)
    return body


def _service(
    cluster: Resource[KafkaCluster], listener: Listener, names: ClusterNames, place: _Place
) -> Document:
    given = listener.configuration
    # What is not routed by host is what a user annotates; of a route it is the route.
    plain = _Place(
        name=place.name, selector=place.selector, host="", labels=place.labels, annotations={}
    )
    body = _head(
        cluster, "v1", "Service", names, plain if listener.type in ROUTED else place
    )  # fmt: skip
    port = {"name": BACKEND, "port": listener.port, "targetPort": listener.port, "protocol": "TCP"}
    spec: Document = {
        "type": "ClusterIP",
        # To be in sync a broker need not be ready, and clients of its partitions must reach it.
        "publishNotReadyAddresses": place.name != names.listener_bootstrap(listener.name),
        "selector": dict(place.selector),
        "ports": [port],
    }
    if listener.type is ListenerType.LOADBALANCER:
        spec["type"] = "LoadBalancer"
        if given.external_traffic_policy is not None:
            spec["externalTrafficPolicy"] = given.external_traffic_policy.value
        if given.load_balancer_source_ranges:
            spec["loadBalancerSourceRanges"] = list(given.load_balancer_source_ranges)
        if given.load_balancer_class:
            spec["loadBalancerClass"] = given.load_balancer_class
    body["spec"] = spec
    return body


def _ingress(
    cluster: Resource[KafkaCluster], listener: Listener, names: ClusterNames, place: _Place
) -> Document:
    body = _head(cluster, "networking.k8s.io/v1", "Ingress", names, place)
    body["metadata"]["annotations"] = {**PASSTHROUGH, **place.annotations}
    backend = {"service": {"name": place.name, "port": {"number": listener.port}}}
    spec: Document = {
        "tls": [{"hosts": [place.host]}],
        "rules": [
            {
                "host": place.host,
                "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
            }
        ],
    }
    if listener.configuration.ingress_class_name:
        spec["ingressClassName"] = listener.configuration.ingress_class_name
    body["spec"] = spec
    return body


def _tls_route(
    cluster: Resource[KafkaCluster], listener: Listener, names: ClusterNames, place: _Place
) -> Document:
    body = _head(cluster, "gateway.networking.k8s.io/v1alpha2", "TLSRoute", names, place)
    gateway = listener.configuration.gateway
    body["spec"] = {
        "parentRefs": [to_json(gateway)] if gateway else [],
        "hostnames": [place.host],
        "rules": [{"backendRefs": [{"name": place.name, "port": listener.port}]}],
    }
    return body


# --- addresses ------------------------------------------------------------------------------------


def balancer_address(service: Object | None) -> str:
    """The host or the address of a load balancer, as the Service's status has it; empty if not."""
    if service is None:
        return ""
    given = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return next((each.get("hostname") or each.get("ip") or "" for each in given), "")


def needs_files(listeners: Iterable[Listener]) -> bool:
    """Whether brokers advertise what does not follow from their ids."""
    return any(
        each.configuration.brokers
        or (
            each.type is ListenerType.LOADBALANCER
            and not each.configuration.advertised_host_template
        )
        for each in listeners
    )


def advertised_port(listener: Listener, broker: int | None, default: str) -> str:
    """The advertised port: of one broker, or as each broker fills it in."""
    given = listener.configuration
    if broker is not None and (own := given.of_broker(broker).advertised_port) is not None:
        return str(own)
    template = given.advertised_port_template
    if template is None:
        return default
    first, plus, _ = template.strip("{}").partition("+")
    if not plus:
        return template
    return f"{{{first}+POD_INDEX}}" if broker is None else str(int(first) + broker)


def own_host(
    listener: Listener, broker: int | None, names: ClusterNames, found: Objects
) -> str | None:
    """The advertised host of a listener with objects of its own; None if unknown yet."""
    given = listener.configuration
    own = given.of_broker(broker) if broker is not None else None
    index: int | str = INDEX if broker is None else broker
    if own is not None and own.advertised_host:
        return own.advertised_host
    if given.advertised_host_template:
        return filled(given.advertised_host_template, index)
    if listener.type in ROUTED:
        return (own.host if own else None) or filled(given.host_template or "", index)
    name = names.listener_broker(listener.name, index)
    if listener.type is ListenerType.CLUSTER_IP:
        return f"{name}.{names.namespace}.svc"
    return balancer_address(found.get(("Service", name))) or None


def bootstrap_servers(listener: Listener, names: ClusterNames, found: Objects) -> str:
    """Where clients of a listener with objects of its own begin; empty if unknown yet."""
    bootstrap = listener.configuration.bootstrap
    name = names.listener_bootstrap(listener.name)
    host = bootstrap.host if bootstrap else None
    if host is None and listener.type is ListenerType.CLUSTER_IP:
        host = f"{name}.{names.namespace}.svc"
    elif host is None:
        host = balancer_address(found.get(("Service", name)))
    return f"{host}:{_bootstrap_port(listener)}" if host else ""


def _bootstrap_port(listener: Listener) -> str:
    """What routes connections by their hosts does so at one port, for brokers and bootstrap."""
    if listener.type not in ROUTED:
        return str(listener.port)
    template = listener.configuration.advertised_port_template or ""
    return template if template.isdecimal() else str(HTTPS)


def pending(cluster: Resource[KafkaCluster], found: Objects) -> list[str]:
    """Each listener of which Kubernetes has not given or accepted an address, and where."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    texts = []
    for each in cluster.body.spec.listeners:
        if each.type not in OWN_OBJECTS or each.type is ListenerType.CLUSTER_IP:
            continue
        wanted = [names.listener_bootstrap(each.name)]
        replicas = cluster.body.spec.brokers.replicas
        wanted += [names.listener_broker(each.name, ordinal) for ordinal in range(replicas)]
        kind = KIND_OF.get(each.type, "Service")
        missing = [name for name in wanted if not _is_given(kind, found.get((kind, name)))]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            texts.append(f"listener {each.name}: {kind} {missing[0]}{more} {_LACKS[kind]}")
    return texts


_LACKS: Final = {
    "Service": "has no address of a load balancer yet",
    "Ingress": "has no address: no controller serves it yet",
    "TLSRoute": "is not accepted by its Gateway yet",
}


def _is_given(kind: str, body: Object | None) -> bool:
    if kind != "TLSRoute":
        return bool(balancer_address(body))
    parents = ((body or {}).get("status") or {}).get("parents") or ()
    return any(
        each.get("type") == "Accepted" and each.get("status") == "True"
        for parent in parents
        for each in parent.get("conditions") or ()
    )
