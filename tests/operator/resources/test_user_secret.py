"""The Secret of a user: what clients read out of it is what was meant."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_user
from barnabas_operator.resources.user_certificate import certificate_properties
from barnabas_operator.resources.user_secret import client_properties, user_secret
from tests.operator import examples
from tests.operator.openapi import OLDEST, problems
from tests.operator.resources import golden

ODD: Final = "a\"b\\c'd#e=f;g:h@i/j?k%l ü$"


def _properties(password: str) -> dict[str, str]:
    return client_properties(
        username="billing",
        password=password,
        bootstrap_servers="a:9095,b:9095",
        security_protocol="SASL_PLAINTEXT",
        mechanism="SCRAM-SHA-512",
    )


def test_golden_secret() -> None:
    """Owner, labels and keys; no hash of the content, and nothing that an API server refuses."""
    body = user_secret(
        read_user(examples.user()).meta,
        cluster="quickstart",
        username="billing",
        password="pencil",
        bootstrap_servers="quickstart-bootstrap.default.svc:9095",
        security_protocol="SASL_PLAINTEXT",
        mechanism="SCRAM-SHA-512",
        rotation="1",
    )
    assert not list(problems(body, OLDEST))
    texts = {key: b64decode(text).decode() for key, text in body["data"].items()}
    golden.compare("user_secret", [{**body, "data": texts}])


@pytest.mark.parametrize("password", ["pencil", ODD])
def test_each_form_has_the_password(password: str) -> None:
    """Whatever characters it has."""
    found = _properties(password)
    assert found["password"] == password
    java = parse_properties(found["client.properties"].encode(), origin="client.properties")
    assert java["sasl.jaas.config"] == found["sasl.jaas.config"]
    spark = json.loads(found["spark.json"])
    assert spark == {f"kafka.{name}": java[name] for name in java}
    lines = dict(each.split("=", 1) for each in found["librdkafka.properties"].splitlines())
    assert lines["sasl.password"] == password
    url = urlsplit(found["url"])
    login, _, servers = url.netloc.rpartition("@")
    assert [unquote(each) for each in login.split(":")] == ["billing", password]
    assert servers == "a:9095,b:9095"
    assert parse_qs(url.query)["sasl.mechanism"] == ["SCRAM-SHA-512"]


def test_quotes_within_the_login_module_are_escaped() -> None:
    """A password cannot add an option of its own."""
    found = _properties('x" y="z\\')["sasl.jaas.config"]
    assert found.endswith(
        'ScramLoginModule required username="billing" password="x\\" y=\\"z\\\\";'
    )


def test_each_form_has_the_certificates_to_trust() -> None:
    """In the form itself, or as a file where the form holds one line."""
    trusted = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    found = client_properties(
        username="billing",
        password="pencil",
        bootstrap_servers="a:9095",
        security_protocol="SASL_SSL",
        mechanism="SCRAM-SHA-512",
        trusted=trusted,
    )
    assert found["ca.crt"] == trusted
    java = parse_properties(found["client.properties"].encode(), origin="client.properties")
    assert java["ssl.truststore.certificates"] == trusted
    assert java["ssl.truststore.type"] == "PEM"
    assert json.loads(found["spark.json"])["kafka.ssl.truststore.certificates"] == trusted
    assert json.loads(found["librdkafka.json"])["ssl.ca.pem"] == trusted
    lines = dict(each.split("=", 1) for each in found["librdkafka.properties"].splitlines())
    assert lines["ssl.ca.location"] == "/etc/kafka-user/ca.crt"
    assert parse_qs(urlsplit(found["url"]).query)["ssl.ca.pem"] == [trusted]


def test_each_form_has_the_certificate_of_the_user() -> None:
    """In the form itself, or as files below the mount path where the form holds one line."""
    found = certificate_properties(
        username="billing",
        certificate="user\nchain\n",
        key="user\nkey\n",
        trusted="authority\n",
        bootstrap_servers="a:9095",
    )
    java = parse_properties(found["client.properties"].encode(), origin="client.properties")
    assert java["ssl.keystore.certificate.chain"] == found["user.crt"] == "user\nchain\n"
    assert java["ssl.keystore.key"] == found["user.key"] == "user\nkey\n"
    assert json.loads(found["spark.json"]) == {f"kafka.{name}": java[name] for name in java}
    assert json.loads(found["librdkafka.json"])["ssl.key.pem"] == "user\nkey\n"
    lines = dict(each.split("=", 1) for each in found["librdkafka.properties"].splitlines())
    assert lines["ssl.certificate.location"] == "/etc/kafka-user/user.crt"
    assert parse_qs(urlsplit(found["url"]).query)["ssl.certificate.pem"] == ["user\nchain\n"]
