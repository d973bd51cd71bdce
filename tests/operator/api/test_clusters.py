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
