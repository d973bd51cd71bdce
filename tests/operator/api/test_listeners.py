"""Listeners: their protocol, and how they are reached, as it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import Listener, filled
from barnabas_operator.api.reading import ResourceError, read_cluster
from barnabas_operator.api.schemas import schema_of
from barnabas_operator.api.writing import to_json
from tests.operator import examples

PLAIN = {"name": "plain", "port": 9092}


def _with(configuration: dict[str, Any]) -> dict[str, Any]:
    outside = {"name": "out", "port": 9094, "type": "loadbalancer", "configuration": configuration}
    return examples.cluster(listeners=[PLAIN, outside])


def test_brokers_know_a_listener_in_capitals() -> None:
    """As Kafka's own configuration has it."""
    assert Listener(name="plain", port=9092).kafka_name == "PLAIN"


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
    (_, read) = read_cluster(examples.cluster(listeners=[PLAIN, listener])).body.spec.listeners
    assert read.security_protocol == protocol
    assert read.is_plain == (protocol == "PLAINTEXT")


def test_configuration_of_single_brokers() -> None:
    """Others have nothing of their own."""
    document = _with({"brokers": [{"broker": 1, "advertisedHost": "one.example"}]})
    given = read_cluster(document).body.spec.listeners[1].configuration
    assert given.of_broker(1).advertised_host == "one.example"
    assert given.of_broker(0).advertised_host is None


@pytest.mark.parametrize("template", ["b {broker}", "b{node}", "{broker"])
def test_a_host_is_no_other_template(template: str) -> None:
    """What a broker could not fill in is refused."""
    with pytest.raises(ResourceError, match=r"advertisedHostTemplate: .* host name in which"):
        read_cluster(_with({"advertisedHostTemplate": template}))


@pytest.mark.parametrize("template", ["{broker}", "9100+broker", "{9100-broker}", "443443"])
def test_a_port_is_a_number_or_counted_on(template: str) -> None:
    """Anything else is refused."""
    with pytest.raises(ResourceError, match="advertisedPortTemplate"):
        read_cluster(_with({"advertisedPortTemplate": template}))


def test_a_template_is_filled_with_the_id() -> None:
    """Every place in it."""
    assert filled("b{broker}.{broker}.example", 2) == "b2.2.example"


def test_a_listener_that_asks_for_nothing_is_written_without_it() -> None:
    """A default would be of internal listeners, too, for which configuration is refused."""
    listeners = schema_of(KafkaCluster)["properties"]["spec"]["properties"]["listeners"]
    assert "default" not in listeners["items"]["properties"]["configuration"]
    read = read_cluster(_with({"loadBalancerClass": "inside"})).body.spec.listeners
    assert "configuration" not in to_json(read[0])
    assert to_json(read[1])["configuration"]["loadBalancerClass"] == "inside"


def _with_certificate(given: dict[str, Any]) -> dict[str, Any]:
    secure = {"name": "secure", "port": 9094, "tls": {"brokerCertChainAndKey": given}}
    return examples.cluster(listeners=[PLAIN, secure])


def test_a_listener_names_the_secret_of_its_certificate() -> None:
    """The keys are those of cert-manager; the Secret is one of those that are read."""
    spec = read_cluster(_with_certificate({"secretName": "public"})).body.spec
    own = spec.listeners[1].own_certificate
    assert own is not None
    assert (own.certificate, own.key) == ("tls.crt", "tls.key")
    assert spec.listeners[0].own_certificate is None
    assert spec.given_secrets == {"public"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, r"brokerCertChainAndKey.secretName: is missing"),
        ({"secretName": "Public"}, r"secretName: is 'Public', must be a name of lower-case"),
        ({"secretName": "a", "key": "../k"}, r"key: is '../k', must be a key of a Secret"),
        ({"secretName": "a", "certficate": "c"}, r"certficate: is no field; did you mean cert"),
    ],
)
def test_invalid_certificate_fields_are_refused_with_their_path(
    given: dict[str, Any], problem: str
) -> None:
    """The error has the path."""
    with pytest.raises(ResourceError, match=problem):
        read_cluster(_with_certificate(given))
