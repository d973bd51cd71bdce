"""How a listener is reached where the addresses of pods lead nowhere.

`{broker}` in a template is the broker's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from barnabas_operator.api.facts import Between, Doc, Fewest, Keyed, Longest, Pattern, Rule

BROKER: Final = "{broker}"
HOST = Pattern(r"^[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?$", "a host name or an IPv4 address")
HOST_TEMPLATE = Pattern(
    r"^([-.A-Za-z0-9]|\{broker\})+$", "a host name in which {broker} is the broker's id"
)
PORT_TEMPLATE = Pattern(
    r"^([0-9]{1,5}|\{[0-9]{1,5}\+broker\})$", "a port such as 443, or {9100+broker}"
)


class TrafficPolicy(StrEnum):
    """Which nodes pass connections on to a pod."""

    LOCAL = "Local"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A Gateway of the Gateway API, with a listener for TLS passthrough."""

    name: Annotated[str, Doc("Name of the Gateway."), Fewest(1), Longest(253)]
    namespace: Annotated[
        str | None, Doc("Its namespace; that of the cluster if absent."), Longest(63)
    ] = None
    section_name: Annotated[
        str | None, Doc("Its listener; every one that fits if absent."), Longest(253)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerBootstrap:
    """Where clients begin; any broker answers."""

    DEFAULTS: ClassVar = False

    host: Annotated[
        str | None, Doc("Host by which it is reached; ingress and tlsroute need it."), HOST,
        Longest(253),
    ] = None  # fmt: skip
    annotations: Annotated[
        Mapping[str, str], Doc("Annotations of its Service, Ingress or TLSRoute."), Longest(32)
    ] = field(default_factory=dict)
    labels: Annotated[
        Mapping[str, str], Doc("Labels of its Service, Ingress or TLSRoute."), Longest(32)
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerBroker:
    """What is different for one broker."""

    DEFAULTS: ClassVar = False

    broker: Annotated[int, Doc("Id of the broker."), Between(0, 998)]
    host: Annotated[
        str | None, Doc("Host that is routed to it, for ingress and tlsroute."), HOST, Longest(253)
    ] = None
    advertised_host: Annotated[str | None, Doc("Advertised host."), HOST, Longest(253)] = None
    advertised_port: Annotated[int | None, Doc("Advertised port."), Between(1, 65535)] = None
    node_port: Annotated[
        int | None, Doc("Port of the nodes, for nodeport."), Between(1024, 65535)
    ] = None
    annotations: Annotated[
        Mapping[str, str], Doc("Annotations of its Service, Ingress or TLSRoute."), Longest(32)
    ] = field(default_factory=dict)
    labels: Annotated[
        Mapping[str, str], Doc("Labels of its Service, Ingress or TLSRoute."), Longest(32)
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerConfiguration:
    """How a listener that is not of type internal is reached."""

    DEFAULTS: ClassVar = False
    RULES: ClassVar = (
        Rule(
            "!has(self.hostTemplate) || self.hostTemplate.contains('{broker}')",
            "hostTemplate: without {broker} all brokers would have one host",
        ),
    )

    bootstrap: Annotated[ListenerBootstrap | None, Doc("Where clients begin.")] = None
    brokers: Annotated[
        tuple[ListenerBroker, ...],
        Doc("What is different for single brokers."),
        Keyed(("broker",)),
        Longest(100),
    ] = ()
    host_template: Annotated[
        str | None,
        Doc("Host that is routed to each broker, for ingress and tlsroute."),
        HOST_TEMPLATE,
        Longest(253),
    ] = None
    advertised_host_template: Annotated[
        str | None,
        Doc("Advertised host of each broker, instead of the one that Kubernetes gives."),
        HOST_TEMPLATE,
        Longest(253),
    ] = None
    advertised_port_template: Annotated[
        str | None,
        Doc(
            "Advertised port of each broker: 443, or {9100+broker}. A number is also that of the"
            " bootstrap of ingress and tlsroute."
        ),
        PORT_TEMPLATE,
        Longest(20),
    ] = None
    annotations: Annotated[
        Mapping[str, str],
        Doc("Annotations of each broker's Service, Ingress or TLSRoute; {broker} is filled in."),
        Longest(32),
    ] = field(default_factory=dict)
    labels: Annotated[
        Mapping[str, str],
        Doc("Labels of each broker's Service, Ingress or TLSRoute; {broker} is filled in."),
        Longest(32),
    ] = field(default_factory=dict)
    load_balancer_source_ranges: Annotated[
        tuple[str, ...], Doc("Addresses that may connect, as CIDRs, for loadbalancer."), Longest(64)
    ] = ()
    load_balancer_class: Annotated[
        str | None, Doc("loadBalancerClass of the Services."), Longest(253)
    ] = None
    external_traffic_policy: Annotated[
        TrafficPolicy | None,
        Doc(
            "Local: only the pod's own node passes connections on, and clients' addresses are seen."
            " Cluster: every node does, also after the pod has moved. Default of nodeport: Local."
        ),
    ] = None
    ingress_class_name: Annotated[
        str | None, Doc("IngressClass, for ingress; it must do TLS passthrough."), Longest(253)
    ] = None
    gateway: Annotated[Gateway | None, Doc("The Gateway, for tlsroute.")] = None

    def of_broker(self, broker: int) -> ListenerBroker:
        """What is different for a broker."""
        found = (each for each in self.brokers if each.broker == broker)
        return next(found, ListenerBroker(broker=broker))


def filled(template: str, broker: int | str) -> str:
    """A template of a host or a value with the broker's id."""
    return template.replace(BROKER, str(broker))
