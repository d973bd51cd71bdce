"""What the API server refuses on sight: a change for each rule of the CRDs, and its message.

A rule is CEL, in `x-kubernetes-validations`. Those that compare with what is stored need a resource
that exists: `before` is what its spec has.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

API_VERSION: Final = "barnabas.io/v1alpha1"
STORED: Final = {"size": "1Gi"}
VALID: Final[Mapping[str, Json]] = {
    "KafkaCluster": {"zookeeper": {"storage": STORED}, "brokers": {"storage": STORED}},
    "KafkaTopic": {"cluster": "any", "partitions": 2},
    "KafkaUser": {"cluster": "any", "authorization": {"roles": []}},
    "KafkaPipeline": {
        "cluster": "any",
        "source": {"topics": ["packages"]},
        "sink": {"parquet": {"path": "/data/packages"}},
        "storage": STORED,
    },
}
TLS: Final = {"tls": {}, "authentication": {"type": "scram-sha-512"}}
WINDOW: Final = {"days": ["Sat"], "from": "01:00", "to": "05:00"}


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A resource that is valid but for one thing, and the message that says which."""

    kind: str
    message: str
    spec: Json = field(default_factory=dict)
    before: Json | None = None
    name: str = ""


def _cluster(message: str, **spec: Any) -> Refusal:
    return Refusal("KafkaCluster", message, spec)


def _listener(message: str, kind: str = "internal", **fields: Any) -> Refusal:
    """A cluster with a listener of a type, which has TLS and passwords unless said otherwise."""
    given = {"name": "a", "type": kind, "port": 9094, **TLS, **fields}
    return _cluster(message, listeners=[given])


def _configured(kind: str, name: str, types: str, value: Any) -> Refusal:
    """A listener with a field of its `configuration` that is for other types."""
    message = f"{name} is for listeners of type {types}: remove it, or change the type"
    part = name.removeprefix("configuration.")
    for each in ("brokers[].host", "brokers[].nodePort"):
        if part == each:
            part, value = "brokers", [{"broker": 0, each.rpartition(".")[2]: value}]
    return _listener(message, kind, configuration={part: value})


def _user(message: str, **spec: Any) -> Refusal:
    return Refusal("KafkaUser", message, spec)


def _role(message: str, **role: str) -> Refusal:
    return _user(message, authorization={"roles": [role]})


def _acl(message: str, **resource: str) -> Refusal:
    acl = {"resource": resource, "operations": ["Describe"]}
    return _user(message, authorization={"acls": [acl]})


def _pipeline(message: str, before: Json | None = None, **spec: Any) -> Refusal:
    return Refusal("KafkaPipeline", message, spec, before)


def _names(kind: str, of: str) -> tuple[Refusal, Refusal]:
    return (
        Refusal(kind, "metadata.name may have at most 40 characters", name="a" * 41),
        Refusal(
            kind,
            f"metadata.name becomes the name of {of}: small letters, digits and dashes",
            name="with.dot",
        ),
    )


HOST: Final = {"host": "a.example"}
PLAIN: Final = [{"name": "a", "port": 9092}]
PARQUET: Final = {"sink": {"parquet": {"path": "/data/other"}}}
SAME_POLICY: Final = [
    {"name": name, "type": "nodeport", "port": port,
     "configuration": {"externalTrafficPolicy": policy}}
    for name, port, policy in (("a", 9094, "Local"), ("b", 9095, "Cluster"))
]  # fmt: skip
CLUSTERS: Final = (
    *_names("KafkaCluster", "Services"),
    Refusal(
        "KafkaCluster",
        "zookeeper.replicas may not change: members are added to a running ensemble by hand",
        {"zookeeper": {"replicas": 3, "storage": STORED}},
        before={"zookeeper": {"replicas": 1, "storage": STORED}},
    ),
    _cluster(
        "profile production has three members and at least three brokers: a write counts with two"
        " copies",
        profile="production",
        brokers={"replicas": 2, "storage": STORED},
    ),
    _cluster(
        "listeners of type nodeport need a nodePort where there are several brokers: their ports"
        " are counted on from it",
        brokers={"replicas": 2, "storage": STORED},
        listeners=[{"name": "a", "type": "nodeport", "port": 9094, **TLS}],
    ),
    _cluster(
        "with authorization and insecure: true every listener but one needs authentication: that"
        " one is for brokers and operator, whose anonymous principal is a super user",
        insecure=True,
        authorization={"type": "simple"},
        listeners=[*PLAIN, {"name": "b", "port": 9093}],
    ),
    _cluster(
        "config: authorizer.class.name and super.users follow from spec.authorization",
        insecure=False,
        config={"super.users": "User:a"},
    ),
    _cluster(
        "with insecure: true one listener must be of type internal, without authentication and tls:"
        " brokers and operator use it",
        insecure=True,
        listeners=[{"name": "a", "type": "nodeport", "port": 9094}],
    ),
    _cluster(
        "with insecure: false every listener needs tls and authentication",
        insecure=False,
        listeners=PLAIN,
    ),
    _cluster(
        "with insecure: false the name replication and port 9091 are taken: brokers reach each"
        " other there",
        insecure=False,
        listeners=[{"name": "replication", "port": 9094, **TLS}],
    ),
    _cluster("give either size or sizing", brokers={"storage": {}}),
    _cluster(
        "each listener needs a port of its own", listeners=[*PLAIN, {"name": "b", "port": 9092}]
    ),
    _cluster(
        "configuration.externalTrafficPolicy must be the same in all listeners of type nodeport:"
        " they share a broker's Service",
        listeners=SAME_POLICY,
    ),
    _cluster(
        "config: listeners, broker.id, log.dirs, zookeeper.connect, barnabas.durability and"
        " barnabas.admin follow from the resource; remove them",
        config={"broker.id": "7"},
    ),
    _cluster("window is for policy Window", roll={"policy": "Window"}),
    _cluster("window is for type Window", rollPolicy={"type": "Window"}),
    # Not rules, but what a field may be at all.
    _cluster("should be greater than or equal to 1", brokers={"replicas": 0, "storage": STORED}),
    _cluster(
        "Unsupported value: 2: supported values", zookeeper={"replicas": 2, "storage": STORED}
    ),
)
LISTENERS: Final = (
    _listener(
        "nodePort is for listeners of type nodeport: remove it, or change the type", nodePort=30094
    ),
    _listener(
        "advertisedHost is for listeners of type nodeport: remove it, or change the type",
        advertisedHost="a.example",
    ),
    _listener(
        "configuration is for listeners of type nodeport, loadbalancer, cluster-ip, ingress,"
        " tlsroute: remove it, or change the type",
        configuration={},
    ),
    _configured("ingress", "configuration.gateway", "tlsroute", {"name": "edge"}),
    _configured("nodeport", "configuration.ingressClassName", "ingress", "nginx"),
    _configured("nodeport", "configuration.hostTemplate", "ingress, tlsroute", "b{broker}.example"),
    _configured(
        "nodeport", "configuration.loadBalancerSourceRanges", "loadbalancer", ["10.0.0.0/8"]
    ),
    _configured("nodeport", "configuration.loadBalancerClass", "loadbalancer", "a.example/b"),
    _configured(
        "cluster-ip", "configuration.externalTrafficPolicy", "nodeport, loadbalancer", "Local"
    ),
    _configured(
        "nodeport", "configuration.bootstrap", "loadbalancer, cluster-ip, ingress, tlsroute", HOST
    ),
    _configured("nodeport", "configuration.brokers[].host", "ingress, tlsroute", "b.example"),
    _configured("loadbalancer", "configuration.brokers[].nodePort", "nodeport", 30095),
    _listener(
        "advertisedHost and configuration.advertisedHostTemplate: give one, for the former is the"
        " host of all brokers",
        "nodeport",
        advertisedHost="a.example",
        configuration={"advertisedHostTemplate": "b{broker}.example"},
    ),
    _listener(
        "ingress and tlsroute need tls, configuration.hostTemplate and"
        " configuration.bootstrap.host: the host of a connection names the broker",
        "ingress",
        configuration={"bootstrap": HOST},
    ),
    _listener(
        "tlsroute needs configuration.gateway",
        "tlsroute",
        configuration={"bootstrap": HOST, "hostTemplate": "b{broker}.example"},
    ),
    _listener(
        "the name metrics and port 9404 are taken: brokers serve their metrics there",
        name="metrics",
    ),
    _cluster(
        "authentication of type tls needs tls",
        listeners=[{"name": "a", "port": 9092, "authentication": {"type": "tls"}}],
    ),
    _listener(
        "hostTemplate: without {broker} all brokers would have one host",
        "ingress",
        configuration={"bootstrap": HOST, "hostTemplate": "b.example"},
    ),
    _listener(
        "give either brokerCertChainAndKey or issuerRef",
        tls={"brokerCertChainAndKey": {"secretName": "own"}, "issuerRef": {"name": "own"}},
    ),
)
TOPICS: Final = (
    Refusal(
        "KafkaTopic", "cluster may not change: make another resource", {"cluster": "b"}, before={}
    ),
    Refusal(
        "KafkaTopic",
        "clusterNamespace may not change: make another resource",
        {"clusterNamespace": "b"},
        before={},
    ),
    Refusal(
        "KafkaTopic",
        "topicName may not change: Kafka cannot rename a topic",
        {"topicName": "b"},
        before={},
    ),
    Refusal(
        "KafkaTopic",
        "partitions may not shrink: Kafka would lose the records of those removed",
        {"partitions": 1},
        before={},
    ),
    Refusal(
        "KafkaTopic",
        "replicas may not change: this version does not move replicas",
        {"replicas": 2},
        before={"replicas": 1},
    ),
    Refusal("KafkaTopic", "topicName cannot be . or ..", {"topicName": ".."}),
)
USERS: Final = (
    Refusal(
        "KafkaUser", "cluster may not change: make another resource", {"cluster": "b"}, before={}
    ),
    Refusal(
        "KafkaUser",
        "clusterNamespace may not change: make another resource",
        {"clusterNamespace": "b"},
        before={},
    ),
    Refusal(
        "KafkaUser",
        "username may not change: make another resource",
        {"username": "b"},
        before={},
    ),
    _user("ANONYMOUS is the principal of brokers and operator", username="ANONYMOUS"),
    _user(
        "passwordSecretRef is for types with a password",
        authentication={"type": "tls", "passwordSecretRef": {"name": "own"}},
    ),
    _user(
        "rotationDays is for passwords that the operator generates",
        authentication={"rotationDays": 30, "passwordSecretRef": {"name": "own"}},
    ),
    _user('Unsupported value: "kerberos"', authentication={"type": "kerberos"}),
    _role("producer and consumer need a topic and have no applicationId", type="producer"),
    _role("group is for consumers", type="producer", topic="t", group="g"),
    _role("transactionalId is for producers", type="consumer", topic="t", transactionalId="x"),
    _role(
        "streams needs an applicationId, and neither topic nor patternType",
        type="streams",
        topic="t",
    ),
    _acl("name is for all types but cluster, of which there is one", type="topic"),
    _acl("the name of a user is its principal, such as User:billing", type="user", name="billing"),
)
PIPELINES: Final = (
    *_names("KafkaPipeline", "a Service"),
    _pipeline("cluster may not change: make another resource", {}, cluster="b"),
    _pipeline("topics may not change: the checkpoint names them", {}, source={"topics": ["other"]}),
    _pipeline("path may not change: the checkpoint belongs to it", {}, **PARQUET),
    _pipeline("give a sink: parquet", sink={}),
    _pipeline("path may not contain ..", sink={"parquet": {"path": "/data/../etc"}}),
    _pipeline("interval must be a second or more", trigger={"interval": "0s"}),
)
REFUSALS: Final = (*CLUSTERS, *LISTENERS, *TOPICS, *USERS, *PIPELINES)


def name_of(number: int) -> str:
    """The name of the resource of a refusal, unless the name is what is wrong."""
    return REFUSALS[number].name or f"refused-{number}"


def stored() -> list[Json]:
    """The valid resources that have to exist."""
    return [
        _document(each.kind, name_of(number), each.before)
        for number, each in enumerate(REFUSALS)
        if each.before is not None
    ]


def refused() -> list[Json]:
    """The invalid resources, one for each refusal."""
    return [
        _document(each.kind, name_of(number), {**(each.before or {}), **each.spec})
        for number, each in enumerate(REFUSALS)
    ]


def reasons(said: str, kind: str, name: str) -> str:
    """Why one resource of several was refused, in the words of kubectl; empty if it was not."""
    about = re.compile(rf"^.*\b{kind}\b[^\n]*\"{re.escape(name)}\" is invalid.*(?:\n\*.*)*", re.M)
    return "\n".join(about.findall(said))


def _document(kind: str, name: str, spec: Json) -> Json:
    body = copy.deepcopy({**VALID[kind], **spec})
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": body}
