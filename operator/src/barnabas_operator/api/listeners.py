"""The listeners of a KafkaCluster: ports, TLS, authentication, and how clients reach them.

`{broker}` in a template is the broker's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.certificates import CertificateChainAndKey, IssuerReference
from barnabas_operator.api.facts import (
    Between,
    Doc,
    Fewest,
    Keyed,
    Longest,
    NoDefault,
    Pattern,
    Rule,
)

# Of the listener by which brokers of a secured cluster, and the operator, reach brokers.
REPLICATION_PORT: Final = 9091
REPLICATION_NAME: Final = "replication"
# The port of the brokers' metrics and health.
ADMIN_PORT: Final = 9404
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
            " Cluster: every node does, also after the pod has moved. Default of nodeport: Local;"
            " listeners of type nodeport share a broker's Service, and so its policy."
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


# --- which fields go together ---------------------------------------------------------------------

_ROUTED: Final = ("ingress", "tlsroute")
_OUTSIDE: Final = ("nodeport", "loadbalancer", "cluster-ip", *_ROUTED)
# Fields and the types of listeners for which they do something. Elsewhere they are refused: a field
# without effect goes unnoticed. What is not here does something for every type.
TYPES_OF_FIELD: Final[Mapping[str, tuple[str, ...]]] = {
    "nodePort": ("nodeport",),
    "advertisedHost": ("nodeport",),
    "configuration": _OUTSIDE,
    "configuration.gateway": ("tlsroute",),
    "configuration.ingressClassName": ("ingress",),
    "configuration.hostTemplate": _ROUTED,
    "configuration.loadBalancerSourceRanges": ("loadbalancer",),
    "configuration.loadBalancerClass": ("loadbalancer",),
    "configuration.externalTrafficPolicy": ("nodeport", "loadbalancer"),
    "configuration.bootstrap": ("loadbalancer", "cluster-ip", *_ROUTED),
    "configuration.brokers[].host": _ROUTED,
    "configuration.brokers[].nodePort": ("nodeport",),
}
TWO_HOSTS: Final = (
    "advertisedHost and configuration.advertisedHostTemplate: give one, for the former is the host"
    " of all brokers"
)


def _given(path: str) -> str:
    """In CEL: whether a listener has a field, or one of its brokers."""
    path, each, of_broker = path.partition("[].")
    parts = path.split(".")
    found = [f"has(self.{'.'.join(parts[: depth + 1])})" for depth in range(len(parts))]
    if each:
        found.append(f"self.{path}.exists(b, has(b.{of_broker}))")
    return " && ".join(found)


def without_effect(path: str) -> str:
    """What is wrong with a field of a listener of another type."""
    types = ", ".join(TYPES_OF_FIELD[path])
    return f"{path} is for listeners of type {types}: remove it, or change the type"


_HAS: Final = "has(self.configuration) && has(self.configuration"
# Of one listener.
LISTENER_RULES: Final = (
    *(
        Rule(f"!({_given(path)}) || self.type in {list(types)}", without_effect(path))
        for path, types in TYPES_OF_FIELD.items()
    ),
    Rule(f"!(has(self.advertisedHost) && {_HAS}.advertisedHostTemplate))", TWO_HOSTS),
    Rule(
        f"!(self.type in {list(_ROUTED)}) || (has(self.tls) && {_HAS}.hostTemplate) &&"
        " has(self.configuration.bootstrap) && has(self.configuration.bootstrap.host))",
        "ingress and tlsroute need tls, configuration.hostTemplate and"
        " configuration.bootstrap.host: the host of a connection names the broker",
    ),
    Rule(f"self.type != 'tlsroute' || ({_HAS}.gateway))", "tlsroute needs configuration.gateway"),
)
_POLICY: Final = "configuration.externalTrafficPolicy"
_HAS_POLICY: Final = "{0}.type == 'nodeport' && has({0}.configuration) && has({0}." + _POLICY + ")"
ONE_POLICY: Final = (
    f"{_POLICY} must be the same in all listeners of type nodeport: they share a broker's Service"
)
# Of all listeners.
ONE_TRAFFIC_POLICY: Final = Rule(
    f"self.all(l, !({_HAS_POLICY.format('l')}) || self.all(m, !({_HAS_POLICY.format('m')})"
    f" || l.{_POLICY} == m.{_POLICY}))",
    ONE_POLICY,
)


def filled(template: str, broker: int | str) -> str:
    """A template of a host or a value with the broker's id."""
    return template.replace(BROKER, str(broker))


class ListenerType(StrEnum):
    """From where a listener can be reached."""

    INTERNAL = "internal"
    NODEPORT = "nodeport"
    LOADBALANCER = "loadbalancer"
    CLUSTER_IP = "cluster-ip"
    INGRESS = "ingress"
    TLSROUTE = "tlsroute"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerAuthentication:
    """How clients of a listener prove who they are."""

    type: Annotated[
        AuthenticationType,
        Doc(
            "scram-sha-512 or scram-sha-256: SASL/SCRAM, with the users that KafkaUsers create;"
            " without tls of the listener the connection is not encrypted (SASL_PLAINTEXT)."
            " tls: a client certificate of the cluster's clients CA, with the user as its CN."
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    """Connections are encrypted, with a certificate of the cluster's own CA or one of your own."""

    RULES: ClassVar = (
        Rule(
            "!has(self.brokerCertChainAndKey) || !has(self.issuerRef)",
            "give either brokerCertChainAndKey or issuerRef",
        ),
    )

    broker_cert_chain_and_key: Annotated[
        CertificateChainAndKey | None,
        Doc("A certificate of your own; that of the cluster's CA if absent."),
    ] = None
    issuer_ref: Annotated[
        IssuerReference | None,
        Doc(
            "Issuer of cert-manager for the listener's certificate: the operator keeps a"
            " Certificate with the hosts that the listener advertises, and brokers show what is"
            " issued, and renewed, without a restart."
        ),
    ] = None


_NO_CONFIGURATION: Final = ListenerConfiguration()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A port on which clients reach the brokers."""

    RULES: ClassVar = (
        *LISTENER_RULES,
        Rule(
            f"self.port != {ADMIN_PORT} && self.name != 'metrics'",
            f"the name metrics and port {ADMIN_PORT} are taken: brokers serve their metrics there",
        ),
        Rule(
            "!has(self.authentication) || self.authentication.type != 'tls' || has(self.tls)",
            "authentication of type tls needs tls",
        ),
    )

    name: Annotated[
        str,
        Doc("Name, unique in the cluster; brokers know it in capitals."),
        Pattern("^[a-z][a-z0-9]*$", "lower-case letters and digits, a letter first"),
        Longest(11),
    ]
    type: Annotated[
        ListenerType,
        Doc(
            "internal: from the Kubernetes cluster, at the pods' names; cluster-ip: the same, at a"
            " Service for each broker; nodeport: from outside, on a port of the node; loadbalancer:"
            " at a load balancer for each broker; ingress, tlsroute: by TLS passthrough of an"
            " Ingress, or of a Gateway with a TLSRoute for each broker."
        ),
    ] = ListenerType.INTERNAL
    port: Annotated[int, Doc("Port in the pod and of the Service."), Between(1024, 65535)]
    node_port: Annotated[
        int | None,
        Doc(
            "Port of the nodes for broker 0, the next one for broker 1 and so on."
            " Kubernetes chooses if it is absent."
        ),
        Between(1024, 65535),
    ] = None
    advertised_host: Annotated[
        str | None,
        Doc("Advertised host instead of the node's address, as for a tunnel."),
        HOST,
        Longest(253),
    ] = None
    configuration: Annotated[
        ListenerConfiguration, Doc("How the listener is reached."), NoDefault()
    ] = _NO_CONFIGURATION
    tls: Annotated[ListenerTls | None, Doc("TLS; without it connections are not encrypted.")] = None
    authentication: Annotated[
        ListenerAuthentication | None,
        Doc("How clients authenticate; without it they are User:ANONYMOUS."),
    ] = None

    @property
    def kafka_name(self) -> str:
        """The name in the broker's settings."""
        return self.name.upper()

    @property
    def security_protocol(self) -> str:
        """Kafka's security protocol."""
        by_sasl = self.authentication is not None and self.authentication.type.mechanism
        if self.tls is not None:
            return "SASL_SSL" if by_sasl else "SSL"
        return "SASL_PLAINTEXT" if by_sasl else "PLAINTEXT"

    @property
    def own_certificate(self) -> CertificateChainAndKey | None:
        """The certificate that it shows instead of the cluster's."""
        return self.tls.broker_cert_chain_and_key if self.tls is not None else None

    @property
    def issuer(self) -> IssuerReference | None:
        """The issuer of the certificate that it shows instead of the cluster's."""
        return self.tls.issuer_ref if self.tls is not None else None

    def issued_into(self, secret: str) -> Listener:
        """The listener with the Secret into which its issuer's certificate is written."""
        if self.tls is None or self.tls.issuer_ref is None:
            return self
        own = CertificateChainAndKey(secret_name=secret)
        return replace(self, tls=replace(self.tls, broker_cert_chain_and_key=own))

    @property
    def is_plain(self) -> bool:
        """Whether clients are neither authenticated nor their connections encrypted."""
        return self.tls is None and self.authentication is None


# The operator's own listener in secured clusters: both sides show certificates of the cluster CA.
REPLICATION: Final = Listener(
    name=REPLICATION_NAME,
    port=REPLICATION_PORT,
    tls=ListenerTls(),
    authentication=ListenerAuthentication(type=AuthenticationType.TLS),
)
# The listeners of a spec that lists none. The API server cannot fill them in: it does not know what
# a cluster was created as.
SECURE_LISTENERS: Final = (
    Listener(
        name="secure",
        port=9092,
        tls=ListenerTls(),
        authentication=ListenerAuthentication(type=AuthenticationType.SHA_512),
    ),
)
PLAIN_LISTENERS: Final = (Listener(name="plain", port=9092),)
