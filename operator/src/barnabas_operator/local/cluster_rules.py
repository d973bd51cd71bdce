"""What is wrong with a KafkaCluster of a file: the API server's CEL rules, and settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.clusters import OPERATOR_SETTINGS, KafkaCluster
from barnabas_operator.api.listeners import (
    ADMIN_PORT,
    Listener,
    ListenerConfiguration,
    ListenerType,
)

LOCAL_TYPES: Final = (ListenerType.INTERNAL, ListenerType.NODEPORT)


def broken_rules(cluster: KafkaCluster) -> Iterator[str]:
    """What is wrong with a cluster by itself; each begins with the path in the resource."""
    # Late: it brings the templates of server.properties, which a file with a mistake does not need.
    from barnabas_operator.plan.listeners import listener_problems
    from barnabas_operator.plan.security import security_problems

    spec = cluster.spec
    for problem in security_problems(cluster):
        here = "; `--secure` gives it both here" if problem.endswith("insecure: true") else ""
        yield f"{problem}{here}"
    if spec.brokers.replicas > 1:
        for each in spec.listeners:
            if each.type is ListenerType.NODEPORT and each.node_port is None:
                text = "needs a nodePort where there are several brokers"
                yield f"spec.listeners: {each.name}: {text}"
    storage = spec.brokers.storage
    if (storage.size is None) == (storage.sizing is None):
        yield "spec.brokers.storage: give either size or sizing"
    given = {"clusterCa": spec.certificates.cluster_ca, "clientsCa": spec.certificates.clients_ca}
    for name, authority in given.items():
        if authority is not None:
            text = "is a Secret of Kubernetes; remove it: here a development authority issues"
            yield f"spec.certificates.{name}: {text}"
    for each in spec.listeners:
        yield from _brought_certificate(each)
    yield from listener_problems(cluster)
    yield from _listener_rules(spec.listeners)
    yield from setting_problems(spec.config)


def _brought_certificate(listener: Listener) -> Iterator[str]:
    brought = {
        "brokerCertChainAndKey": (listener.own_certificate, "a Secret of Kubernetes"),
        "issuerRef": (listener.issuer, "for cert-manager on Kubernetes"),
    }
    for name, (given, what) in brought.items():
        if given is not None:
            text = f"is {what}; remove it: here a development authority issues"
            yield f"spec.listeners: {listener.name}: tls.{name}: {text}"


def _listener_rules(listeners: Sequence[Listener]) -> Iterator[str]:
    for what, counted in (
        ("port", Counter(str(each.port) for each in listeners)),
        ("name", Counter(each.name for each in listeners)),
    ):
        for value, count in counted.items():
            if count > 1:
                yield f"spec.listeners: {count} have the {what} {value}; each needs its own"
    for each in listeners:
        by_certificate = each.authentication and each.authentication.type is AuthenticationType.TLS
        if by_certificate and each.tls is None:
            yield f"spec.listeners: {each.name}: authentication of type tls needs tls"
        if each.port == ADMIN_PORT or each.name == "metrics":
            yield f"spec.listeners: {each.name}: name metrics and port {ADMIN_PORT} are taken"
        if each.type not in LOCAL_TYPES or each.configuration != ListenerConfiguration():
            text = "types other than internal and nodeport, and configuration, need Kubernetes"
            yield f"spec.listeners: {each.name}: {text}"


def setting_problems(config: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the settings of brokers, and what follows from the resource itself."""
    own = [name for name in config if name.startswith(OPERATOR_SETTINGS)]
    for name in own:
        yield f"spec.config.{name}: follows from the resource itself; remove it"
    others = {name: value for name, value in config.items() if name not in own}
    for problem in BrokerSettings.problems(others, strict=True):
        yield f"spec.config.{problem}"
