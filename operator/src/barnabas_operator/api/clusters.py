"""KafkaCluster: a ZooKeeper ensemble, the brokers on it, and where clients reach them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from barnabas_operator.api.certificates import (
    Certificates,
    CertificateStatus,
)
from barnabas_operator.api.conditions import Condition, HeldGeneration
from barnabas_operator.api.facts import (
    Between,
    Doc,
    Fewest,
    Keyed,
    Longest,
    NoDefault,
    OneOf,
    Rule,
)
from barnabas_operator.api.listeners import (
    ONE_TRAFFIC_POLICY,
    PLAIN_LISTENERS,
    REPLICATION,
    REPLICATION_NAME,
    REPLICATION_PORT,
    SECURE_LISTENERS,
    Listener,
)
from barnabas_operator.api.pods import PodTemplate
from barnabas_operator.api.rolls import Roll, RollPolicy, RollStatus
from barnabas_operator.api.storage import BrokerStorage, Claim, ContainerResources

# Settings that follow from the resource itself. Refusing them loudly beats dropping them silently.
OPERATOR_SETTINGS: Final = (
    "advertised.", "barnabas.admin.", "barnabas.durability", "broker.id", "control.plane.listener",
    "inter.broker.listener", "listener.", "listeners", "log.dir", "zookeeper.connect",
)  # fmt: skip
# What spec.authorization and spec.insecure set.
AUTHORIZATION_SETTINGS: Final = ("authorizer.class.name", "super.users")
AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
# The principal of the listener without authentication, which brokers and operator use.
ANONYMOUS: Final = "ANONYMOUS"
# In CEL: fields whose default depends on the profile may be absent.
_BROKERS: Final = (
    "(has(self.brokers.replicas) ? self.brokers.replicas : self.profile == 'production' ? 3 : 1)"
)
_NO_TEMPLATE: Final = PodTemplate()
_ZOOKEEPER_RESOURCES: Final = ContainerResources(memory="512Mi", cpu="100m")
_CERTIFICATES: Final = Certificates()
_BROKER_RESOURCES: Final = ContainerResources(memory="512Mi", cpu="250m")


class Profile(StrEnum):
    """For what the defaults of a cluster are chosen."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class Durability(StrEnum):
    """When a record counts."""

    REPLICATED = "replicated"
    FSYNC = "fsync"


class Security(StrEnum):
    """Whether all clients of a cluster's brokers must authenticate."""

    SECURED = "Secured"
    INSECURE = "Insecure"


class ZooKeeperProtocol(StrEnum):
    """How the traffic to and within an ensemble is protected."""

    TLS = "TLS"
    PLAINTEXT = "Plaintext"


class ZooKeeperType(StrEnum):
    """What keeps the coordination data."""

    APACHE = "apache"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeper:
    """The ensemble that keeps the cluster's coordination data."""

    type: Annotated[
        ZooKeeperType | None,
        Doc(
            "apache: an ensemble of Apache ZooKeeper. It always is one on Kubernetes; `barnabas"
            " local` runs the one for development unless this is said."
        ),
    ] = None
    replicas: Annotated[
        int,
        Doc("Members: 1, or 3 of which one may fail; by default 1, with profile production 3."),
        OneOf((1, 3)),
        NoDefault(),
    ] = 1
    storage: Annotated[Claim, Doc("The claim of each member.")]
    resources: Annotated[
        ContainerResources,
        Doc(
            "Memory and CPU of each member; by default 512Mi and 100m, with profile production 1Gi"
            " and 500m."
        ),
        NoDefault(),
    ] = _ZOOKEEPER_RESOURCES
    template: Annotated[PodTemplate, Doc("What the members' pods have beside."), NoDefault()] = (
        _NO_TEMPLATE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rack:
    """What a rack is: nodes that may fail together."""

    topology_key: Annotated[
        str,
        Doc("Label of the nodes whose value is the rack, such as topology.kubernetes.io/zone."),
        Fewest(1),
        Longest(317),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """The brokers."""

    replicas: Annotated[
        int,
        Doc(
            "How many brokers: by default 1, with profile production 3. Brokers that hold replicas"
            " are kept until these are moved."
        ),
        Between(1, 999),
        NoDefault(),
    ] = 1
    storage: Annotated[BrokerStorage, Doc("The claim of each broker.")]
    resources: Annotated[
        ContainerResources,
        Doc(
            "Memory and CPU of each broker; by default 512Mi and 250m, with profile production 2Gi"
            " and 1."
        ),
        NoDefault(),
    ] = _BROKER_RESOURCES
    rack: Annotated[
        Rack | None,
        Doc(
            "Spread brokers over racks, and set each broker's rack: replicas of a partition are"
            " then placed in different racks. The operator needs the right to get nodes."
        ),
    ] = None
    template: Annotated[PodTemplate, Doc("What the brokers' pods have beside."), NoDefault()] = (
        _NO_TEMPLATE
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageNames:
    """Images of the cluster's pods."""

    broker: Annotated[str | None, Doc("Image of the brokers."), Longest(512)] = None
    zookeeper: Annotated[str | None, Doc("Image of the ensemble."), Longest(512)] = None


class AuthorizationType(StrEnum):
    """What decides who may do what."""

    SIMPLE = "simple"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Who may do what: ACLs decide, and nothing is allowed that no ACL allows."""

    type: Annotated[
        AuthorizationType, Doc("simple: ACLs in the cluster, checked by Kafka's AclAuthorizer.")
    ] = AuthorizationType.SIMPLE
    super_users: Annotated[
        tuple[str, ...],
        Doc(
            "Names of users who may do everything, beside the operator and the brokers, which are"
            " User:ANONYMOUS on the listener without authentication."
        ),
        Longest(32),
    ] = ()


# In CEL: whether a spec says by name what its cluster is. What it is otherwise is recorded when it
# is created; the operator refuses what contradicts that.
_SECURED: Final = "has(self.insecure) && !self.insecure"
_INSECURE: Final = "has(self.insecure) && self.insecure"
# Listeners depend on it, too, where the spec lists none.
_UNLISTED: Final = "!has(self.listeners)"


def _members(spec: str) -> str:
    """In CEL: the members of a spec's ensemble."""
    given = f"{spec}.zookeeper.replicas"
    default = f"has({spec}.profile) && {spec}.profile == 'production' ? 3 : 1"
    return f"(has({given}) ? {given} : {default})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """The cluster that is wanted."""

    RULES: ClassVar = (
        Rule(
            f"{_members('self')} == {_members('oldSelf')}",
            "zookeeper.replicas may not change: members are added to a running ensemble by hand",
        ),
        Rule(
            f"self.profile != 'production' || ({_BROKERS} >= 3 && {_members('self')} == 3)",
            "profile production has three members and at least three brokers: a write counts with"
            " two copies",
        ),
        Rule(
            f"{_BROKERS} == 1 || {_UNLISTED}"
            " || self.listeners.all(l, l.type != 'nodeport' || has(l.nodePort))",
            "listeners of type nodeport need a nodePort where there are several brokers:"
            " their ports are counted on from it",
        ),
        Rule(
            f"!({_INSECURE}) || !has(self.authorization) || {_UNLISTED}"
            " || self.listeners.filter(l, !has(l.authentication)).size() == 1",
            "with authorization and insecure: true every listener but one needs authentication:"
            " that one is for brokers and operator, whose anonymous principal is a super user",
        ),
        Rule(
            f"!(has(self.authorization) || {_SECURED}) || !["
            + ", ".join(f"'{name}'" for name in AUTHORIZATION_SETTINGS)
            + "].exists(name, name in self.config)",
            "config: authorizer.class.name and super.users follow from spec.authorization",
        ),
        Rule(
            f"!({_INSECURE}) || {_UNLISTED} || self.listeners.exists(l,"
            " l.type == 'internal' && !has(l.authentication) && !has(l.tls))",
            "with insecure: true one listener must be of type internal, without authentication and"
            " tls: brokers and operator use it",
        ),
        Rule(
            f"!({_SECURED}) || {_UNLISTED}"
            " || self.listeners.all(l, has(l.tls) && has(l.authentication))",
            "with insecure: false every listener needs tls and authentication",
        ),
        Rule(
            f"!({_SECURED}) || {_UNLISTED} || self.listeners.all(l,"
            f" l.port != {REPLICATION_PORT} && l.name != '{REPLICATION_NAME}')",
            f"with insecure: false the name {REPLICATION_NAME} and port {REPLICATION_PORT} are"
            " taken: brokers reach each other there",
        ),
    )

    profile: Annotated[
        Profile,
        Doc(
            "What the defaults are chosen for. development: one broker and one member, as small as"
            " they go. production: three of each with more memory and CPU, on different nodes;"
            " three copies, two of which a write needs; no topics by accident."
        ),
    ] = Profile.DEVELOPMENT
    zookeeper: Annotated[ZooKeeper, Doc("The ZooKeeper ensemble.")]
    brokers: Annotated[Brokers, Doc("The brokers.")]
    listeners: Annotated[
        tuple[Listener, ...],
        Doc(
            "Where clients reach the brokers. If absent there is one of type internal on port 9092:"
            " secure, with tls and scram-sha-512, or plain in an insecure cluster. In an insecure"
            " cluster brokers and operator use the first internal one that has neither"
            " authentication nor tls."
        ),
        Keyed(("name",)),
        NoDefault(),
        Fewest(1),
        Longest(8),
        Rule(
            "self.all(l, self.exists_one(m, m.port == l.port))",
            "each listener needs a port of its own",
        ),
        ONE_TRAFFIC_POLICY,
    ] = ()
    insecure: Annotated[
        bool | None,
        Doc(
            "Absent or false: every listener needs tls and authentication, ACLs decide who may do"
            " what, and brokers and operator know each other by certificates. true: none of that is"
            " asked for. It is decided when the cluster is created, and cannot change; a cluster of"
            " an operator for which an absent field was true stays insecure."
        ),
    ] = None
    durability: Annotated[
        Durability,
        Doc(
            "When a record counts: replicated, once every in-sync broker has it in memory, as in"
            " Kafka; fsync, once each of them has it on disk."
        ),
    ] = Durability.REPLICATED
    config: Annotated[
        Mapping[str, str],
        Doc("Broker settings, as in server.properties; values are strings."),
        Longest(200),
        Rule(
            "self.all(k, !["
            + ", ".join(f"'{prefix}'" for prefix in OPERATOR_SETTINGS)
            + "].exists(p, k.startsWith(p)))",
            "config: listeners, broker.id, log.dirs, zookeeper.connect, barnabas.durability and"
            " barnabas.admin follow from the resource; remove them",
        ),
    ] = field(default_factory=dict)
    certificates: Annotated[
        Certificates, Doc("Who issues the certificates of listeners with tls, and for how long.")
    ] = _CERTIFICATES
    authorization: Annotated[
        Authorization | None,
        Doc("Who may do what. Without it every client may do everything."),
    ] = None
    allowed_namespaces: Annotated[
        tuple[str, ...],
        Doc(
            "Other namespaces whose KafkaTopics and KafkaUsers may name this cluster; * is every"
            " one. Who writes them decides about topics and ACLs of the cluster."
        ),
        Longest(100),
    ] = ()

    version: Annotated[
        str | None,
        Doc(
            "Version of Barnabas whose images the pods run, one that the operator knows. If absent"
            " the cluster keeps the images that it was created with, whatever the operator runs."
        ),
        Longest(64),
    ] = None
    images: Annotated[
        ImageNames | None, Doc("Images of your own, instead of those of the version.")
    ] = None
    roll: Annotated[
        Roll | None, Doc("When and how carefully pods that serve are replaced after a change.")
    ] = None
    roll_policy: Annotated[
        RollPolicy | None, Doc("Deprecated, use roll: has no effect beside it.")
    ] = None

    @property
    def rolls(self) -> Roll:
        """How pods are replaced, by either field."""
        before = self.roll_policy or RollPolicy()
        return self.roll or Roll(policy=before.type, window=before.window)

    def allows_namespace(self, namespace: str) -> bool:
        """Whether KafkaTopics and KafkaUsers of another namespace may name the cluster."""
        return not {namespace, "*"}.isdisjoint(self.allowed_namespaces)

    @property
    def secured(self) -> bool:
        """Whether all clients of the brokers must authenticate."""
        return not self.insecure

    def in_mode(self, *, secured: bool) -> ClusterSpec:
        """The spec of a cluster that is secured or not, with listeners if it lists none."""
        listeners = self.listeners or (SECURE_LISTENERS if secured else PLAIN_LISTENERS)
        return replace(self, insecure=not secured, listeners=listeners)

    @property
    def all_listeners(self) -> tuple[Listener, ...]:
        """Those of the brokers: what the resource lists, and the operator's own."""
        return (*self.listeners, REPLICATION) if self.secured else self.listeners

    @property
    def needs_certificates(self) -> bool:
        """Whether brokers show certificates."""
        return any(each.tls is not None for each in self.all_listeners)

    @property
    def given_secrets(self) -> frozenset[str]:
        """The names of the Secrets with certificates that are given."""
        authorities = (self.certificates.cluster_ca, self.certificates.clients_ca)
        given = (*authorities, *(each.own_certificate for each in self.listeners))
        return frozenset(each.secret_name for each in given if each is not None)

    @property
    def authorizes(self) -> bool:
        """Whether ACLs decide who may do what."""
        return (
            self.secured
            or self.authorization is not None
            or bool(self.config.get(AUTHORIZATION_SETTINGS[0]))
        )

    @property
    def broker_config(self) -> dict[str, str]:
        """The settings of every broker that do not depend on where it runs."""
        settings = dict(self.config)
        if self.durability is not Durability.REPLICATED:
            settings["barnabas.durability"] = self.durability.value
        if self.authorization is not None and not self.secured:
            names = (ANONYMOUS, *self.authorization.super_users)
            settings["authorizer.class.name"] = AUTHORIZER
            settings["super.users"] = ";".join(f"User:{name}" for name in names)
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerStatus:
    """Where a listener is reached."""

    name: Annotated[str, Doc("The listener's name.")]
    type: Annotated[str, Doc("The listener's type.")]
    bootstrap_servers: Annotated[str, Doc("What clients are given as bootstrap.servers.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """How many pods there should be, and are ready."""

    replicas: Annotated[int, Doc("Pods that are wanted.")] = 0
    ready: Annotated[int, Doc("Pods that are ready.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageStatus:
    """The size of the brokers' claims and how it came about."""

    size: Annotated[str, Doc("Size of each broker's claim.")] = ""
    arithmetic: Annotated[
        tuple[str, ...], Doc("How the size follows from spec.brokers.storage.sizing.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The cluster as it was last seen."""

    observed_generation: Annotated[int, Doc("The generation that this status is about.")] = 0
    conditions: Annotated[
        tuple[Condition, ...], Doc("Ready, Reconciling, Stalled, Warning."), Keyed(("type",))
    ] = ()
    cluster_id: Annotated[str, Doc("Kafka's id of the cluster.")] = ""
    security: Annotated[
        str, Doc("Secured or Insecure, as the cluster was created; spec.insecure cannot change it.")
    ] = ""
    zookeeper_protocol: Annotated[
        str,
        Doc(
            "Of a secured cluster: TLS, or Plaintext if it was created by an operator that had no"
            " TLS for ZooKeeper. It does not change."
        ),
    ] = ""
    listeners: Annotated[
        tuple[ListenerStatus, ...], Doc("Where clients reach the brokers."), Keyed(("name",))
    ] = ()
    brokers: Annotated[ReplicaStatus, Doc("The brokers' pods.")] = ReplicaStatus()
    zookeeper: Annotated[ReplicaStatus, Doc("The ensemble's pods.")] = ReplicaStatus()
    storage: Annotated[StorageStatus, Doc("The brokers' claims.")] = StorageStatus()
    certificates: Annotated[
        tuple[CertificateStatus, ...], Doc("When certificates expire."), Keyed(("name",))
    ] = ()
    images: Annotated[ImageNames, Doc("Images that the pods run or are updated to.")] = ImageNames()
    update_available: Annotated[
        str, Doc("What a newer operator would change, once the spec asks for it.")
    ] = ""
    held_generation: HeldGeneration = 0
    inter_broker_protocol_version: Annotated[
        str, Doc("What brokers speak among themselves, where the operator knows it.")
    ] = ""
    roll: Annotated[RollStatus | None, Doc("The roll that is due or under way.")] = None
    initialized: Annotated[
        bool, Doc("Whether all brokers have been ready since the cluster was created.")
    ] = False
    answering: Annotated[
        bool, Doc("Whether brokers answer: topics are managed as long as they do.")
    ] = False

    @property
    def is_of_an_earlier_operator(self) -> bool:
        """Whether an operator wrote this that did not remember the images in use."""
        return self.observed_generation > 0 and not self.images.broker

    @property
    def serves_topics(self) -> bool:
        """Whether topics can be managed: brokers answer, and all have been there once."""
        return self.initialized and self.answering


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster:
    """A Kafka cluster: ZooKeeper, brokers, listeners."""

    # Pod names end in "-zookeeper-0" and a revision hash; a label may have 63 characters.
    RULES: ClassVar = (
        Rule("size(self.metadata.name) <= 40", "metadata.name may have at most 40 characters"),
        Rule(
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name becomes the name of Services: small letters, digits and dashes",
        ),
    )

    spec: Annotated[ClusterSpec, Doc("The cluster that is wanted.")]
    status: Annotated[ClusterStatus, Doc("The cluster as it was last seen.")] = ClusterStatus()

    @property
    def zookeeper_tls(self) -> bool:
        """Whether all traffic of ZooKeeper is TLS, between parties that show certificates."""
        protocol = self.status.zookeeper_protocol
        return self.spec.secured and protocol != ZooKeeperProtocol.PLAINTEXT.value
