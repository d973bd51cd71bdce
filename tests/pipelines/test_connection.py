"""The Secret of a KafkaUser as files, and the properties that refer to them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas_pipelines.connection import PROVIDER_CLASS, Connection, UserFiles
from barnabas_pipelines.errors import SpecError
from tests.operator.kubelet import mount

SCRAM = {
    "bootstrap.servers": "kafka:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": 'a.LoginModule required password="pencil";',
    "password": "pencil",
    "ca.crt": "authority",
}
TLS = {
    "bootstrap.servers": "kafka:9094",
    "security.protocol": "SSL",
    "ca.crt": "authority",
    "user.crt": "certificate",
    "user.key": "key",
}


def write(directory: Path, data: Mapping[str, str]) -> UserFiles:
    """A Secret as a volume has it."""
    mount({key: b64encode(text.encode()).decode() for key, text in data.items()}, directory)
    return UserFiles(directory)


def test_a_user_with_a_password(tmp_path: Path) -> None:
    """What is secret is a reference, what is not is itself."""
    assert Connection(user=write(tmp_path, SCRAM)).properties() == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "config.providers": "directory",
        "config.providers.directory.class": PROVIDER_CLASS,
        "config.providers.directory.param.allowed.paths": str(tmp_path),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"${{directory:{tmp_path}:sasl.jaas.config}}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": f"${{directory:{tmp_path}:ca.crt}}",
    }


def test_without_tls_there_is_no_truststore(tmp_path: Path) -> None:
    """Of a listener with authentication alone."""
    plain = {**SCRAM, "security.protocol": "SASL_PLAINTEXT"}
    found = write(tmp_path, plain).properties()
    assert not [name for name in found if name.startswith("ssl.")]


def test_a_user_with_a_certificate(tmp_path: Path) -> None:
    """Certificate and key, and no login."""
    found = write(tmp_path, TLS).properties()
    assert found["ssl.keystore.type"] == "PEM"
    assert found["ssl.keystore.key"] == f"${{directory:{tmp_path}:user.key}}"
    assert found["ssl.keystore.certificate.chain"] == f"${{directory:{tmp_path}:user.crt}}"
    assert not [name for name in found if name.startswith("sasl.")]


def test_without_an_authority_java_trusts_its_own(tmp_path: Path) -> None:
    """The certificate of the user's listener is of a public one."""
    found = write(tmp_path, {key: TLS[key] for key in TLS if key != "ca.crt"}).properties()
    assert not [name for name in found if name.startswith("ssl.truststore")]
    assert found["ssl.keystore.type"] == "PEM"


def test_given_addresses_come_before_those_of_the_secret(tmp_path: Path) -> None:
    """Such as those of a tunnel."""
    user = write(tmp_path, SCRAM)
    assert Connection(bootstrap="here:1", user=user).properties()["bootstrap.servers"] == "here:1"
    assert Connection(bootstrap="here:1").properties() == {"bootstrap.servers": "here:1"}


def test_a_change_of_what_is_read_is_another_version(tmp_path: Path) -> None:
    """And nothing else is: no rewrite, no other key. The version says nothing of the content."""
    user = write(tmp_path, SCRAM)
    first = user.version()
    assert first is not None
    write(tmp_path, {**SCRAM, "spark.json": "{}"})
    assert user.version() == first
    versions = {first}
    for key, text in (("sasl.jaas.config", "new"), ("ca.crt", "new"), ("bootstrap.servers", "n:1")):
        write(tmp_path, {**SCRAM, key: text})
        versions.add(user.version() or "")
    assert len(versions) == 4
    assert Connection(bootstrap="here:1").version() == ""


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "security.protocol: No such file or directory; --kafka-user needs the keys of a"),
        ({"security.protocol": "PLAINTEXT"}, "is 'PLAINTEXT', must be one of SASL_SSL"),
        ({"security.protocol": "SSL"}, "user.crt: No such file"),
        ({key: TLS[key] for key in TLS if key != "user.key"}, "user.key: No such file"),
    ],
)
def test_files_that_are_missing_are_named(
    tmp_path: Path, data: Mapping[str, str], problem: str
) -> None:
    """Before Spark starts."""
    with pytest.raises(SpecError) as raised:
        write(tmp_path, data).properties()
    assert problem in str(raised.value)


def test_a_directory_that_kafka_cannot_refer_to(tmp_path: Path) -> None:
    """Its references have a form of their own."""
    odd = tmp_path / "a:b"
    odd.mkdir()
    for directory in (odd, Path("relative")):
        with pytest.raises(SpecError, match="give an absolute path without"):
            UserFiles(directory).properties()
