"""Client properties: Java's files for a client that is not Java."""

from pathlib import Path

import pytest

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.properties import client_properties, java_properties, parse_assignments


def written(directory: Path, text: str) -> Path:
    """A properties file with this text."""
    path = directory / "client.properties"
    path.write_text(text)
    return path


def test_assignments_keep_equal_signs_in_values() -> None:
    """A password may contain anything; only the first = separates."""
    assert parse_assignments(["a=b=c", " d = e ", "f="], "-X") == {"a": "b=c", "d": "e", "f": ""}


@pytest.mark.parametrize("text", ["a", "=b", ""])
def test_an_assignment_without_name_or_value_is_refused(text: str) -> None:
    """The message names the option that was misused."""
    with pytest.raises(InputError, match="-X takes NAME=VALUE"):
        parse_assignments([text], "-X")


def test_a_file_for_kafkas_own_tools_is_understood(tmp_path: Path) -> None:
    """The file people have from a Java set-up connects this client too."""
    path = written(
        tmp_path,
        "# a comment\n"
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="al\\\\"ice" password=\'s3=cret\';\n'
        "ssl.truststore.location=ca.pem\n"
        "key.deserializer=org.example.K\n"
        "metric.reporters=\n"
        "request.timeout.ms=7000\n",
    )
    assert client_properties(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": 'al"ice',
        "sasl.password": "s3=cret",
        "ssl.ca.location": "ca.pem",
        "socket.timeout.ms": "7000",
    }


def test_comments_of_a_login_line_hold_no_credentials() -> None:
    """Neither an older password that was left there, nor what only looks like a comment."""
    login = """M required /* username="old" */ url="https://host" username="alice"
        password="new"; // password="old" """
    assert java_properties({"sasl.jaas.config": login}, "") == {
        "sasl.username": "alice",
        "sasl.password": "new",
    }


def test_a_pem_keystore_is_key_and_certificate(tmp_path: Path) -> None:
    """One PEM file may hold both; a PKCS#12 file is passed on as it is."""
    assert client_properties(written(tmp_path, "ssl.keystore.location=me.pem")) == {
        "ssl.key.location": "me.pem",
        "ssl.certificate.location": "me.pem",
    }
    path = written(tmp_path, "ssl.keystore.location=me.p12")
    assert client_properties(path) == {"ssl.keystore.location": "me.p12"}


def test_a_java_truststore_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """Nothing outside a JVM reads JKS; trusting nobody or everybody instead would be worse."""
    with pytest.raises(InputError, match="as PEM"):
        client_properties(written(tmp_path, "ssl.truststore.location=trust.jks"))


def test_a_malformed_file_is_an_input_error(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(InputError, match=r"client\.properties"):
        client_properties(written(tmp_path, "a=\\uZZZZ"))
