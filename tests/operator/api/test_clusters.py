"""KafkaCluster: what its declaration promises."""

from __future__ import annotations

import pytest

from barnabas_operator.api.clusters import OPERATOR_SETTINGS, ClusterSpec, Listener
from barnabas_operator.api.declarations import fields_of
from barnabas_operator.api.reading import read_cluster
from tests.operator import examples


def test_brokers_know_a_listener_in_capitals() -> None:
    """As Kafka's own configuration has it."""
    assert Listener(name="plain", port=9092).kafka_name == "PLAIN"


def test_every_setting_that_follows_from_the_resource_is_refused() -> None:
    """The CEL rule of `config` names each prefix."""
    (config,) = [field for field in fields_of(ClusterSpec) if field.name == "config"]
    (rule,) = config.rules
    assert all(f"'{prefix}'" in rule.expression for prefix in OPERATOR_SETTINGS)


@pytest.mark.parametrize(
    ("secured", "listener"),
    [(True, ("secure", 9092, "SASL_SSL")), (False, ("plain", 9092, "PLAINTEXT"))],
)
def test_the_listener_of_a_cluster_that_lists_none(
    secured: bool, listener: tuple[str, int, str]
) -> None:
    """By what the cluster is; listeners that are listed stay."""
    document = examples.cluster()
    del document["spec"]["listeners"]
    (found,) = read_cluster(document).body.spec.in_mode(secured=secured).listeners
    assert (found.name, found.port, found.security_protocol) == listener
    given = read_cluster(examples.cluster()).body.spec
    assert given.in_mode(secured=secured).listeners == given.listeners


def test_clusters_are_secured_unless_they_say_otherwise() -> None:
    """Absent or false."""
    for value, secured in ((None, True), (False, True), (True, False)):
        assert read_cluster(examples.cluster(insecure=value)).body.spec.secured == secured


@pytest.mark.parametrize(
    ("tls", "authentication", "protocol"),
    [
        (False, None, "PLAINTEXT"),
        (True, None, "SSL"),
        (False, "scram-sha-512", "SASL_PLAINTEXT"),
        (True, "scram-sha-512", "SASL_SSL"),
        (True, "tls", "SSL"),
    ],
)
def test_the_security_protocol_of_a_listener(
    tls: bool, authentication: str | None, protocol: str
) -> None:
    """SASL is for passwords: client certificates are part of TLS."""
    listener: dict[str, object] = {"name": "clients", "port": 9093}
    if tls:
        listener["tls"] = {}
    if authentication:
        listener["authentication"] = {"type": authentication}
    plain = {"name": "plain", "port": 9092}
    (_, read) = read_cluster(examples.cluster(listeners=[plain, listener])).body.spec.listeners
    assert read.security_protocol == protocol
    assert read.is_plain == (protocol == "PLAINTEXT")
