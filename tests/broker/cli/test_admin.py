"""From the properties of a connection to the admin client's settings."""

from __future__ import annotations

import ssl

import pytest

from barnabas_broker.cli.admin import call, client_config
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.testing import Broker
from barnabas_kafka.client import Plain, Scram, describe_cluster
from barnabas_kafka.client.partitions import ElectionType, elect_leaders
from barnabas_kafka.ids import TopicPartition
from tests.waiting import ANSWER, seconds


def connection(bootstrap: str = "broker:9092", **properties: str) -> Connection:
    """Underscores stand for the dots of names."""
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return Connection(bootstrap, seconds(ANSWER), named)


def test_a_call_on_a_broker(kafka_broker: Broker) -> None:
    """The result, or the broker's error with its code."""
    here = connection(kafka_broker.bootstrap_servers)
    assert len(call(here, describe_cluster()).brokers) == 1
    missing = TopicPartition("missing", 0)
    error = call(here, elect_leaders([missing], ElectionType.PREFERRED))[missing]
    assert error is not None
    with pytest.raises(CommandError, match="cannot reach"):
        call(connection("127.0.0.1:1"), describe_cluster())


def test_tls_verifies_by_default() -> None:
    """Certificate and host name, each switched off by its own property."""
    safe = client_config(connection(security_protocol="ssl")).tls
    assert safe is not None
    assert (safe.check_hostname, safe.verify_mode) == (True, ssl.CERT_REQUIRED)
    names = {"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "none"}
    unnamed = client_config(connection(**names)).tls
    assert unnamed is not None
    assert (unnamed.check_hostname, unnamed.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert client_config(connection()).tls is None


def test_mechanisms() -> None:
    """By either name of the property; without SASL none is used."""
    credentials = {"sasl_username": "u", "sasl_password": "p"}
    plain = connection(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", **credentials)
    assert client_config(plain).sasl == Plain("u", "p")
    scram = connection(security_protocol="SASL_SSL", sasl_mechanisms="SCRAM-SHA-256", **credentials)
    assert client_config(scram).sasl == Scram("u", "p", "SCRAM-SHA-256")
    assert client_config(connection(sasl_mechanism="PLAIN", **credentials)).sasl is None


@pytest.mark.parametrize(
    "properties",
    [
        {"security_protocol": "TLS"},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"},
        {"security_protocol": "SSL", "ssl_keystore_location": "a.p12"},
        {"security_protocol": "SSL", "ssl_key_pem": "..."},
        {"security_protocol": "SSL", "ssl_ca_location": "/nowhere/ca.pem"},
    ],
    ids=str,
)
def test_unsupported_security_properties_are_refused(properties: dict[str, str]) -> None:
    """Rather than passed over: the connection would be less safe than it was asked to be."""
    with pytest.raises(InputError):
        client_config(connection(**properties))
