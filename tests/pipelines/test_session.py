"""What a session is set to, as far as that can be said without starting one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas_pipelines import connection, session


def test_a_session_is_small_and_writes_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything Spark writes for itself is below the work directory."""
    for variable in (session.MEMORY_VARIABLE, session.LOG_LEVEL_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    found = session.settings(
        work=Path("/data/work"), connector=[Path("/j/a.jar"), Path("/j/b.jar")]
    )
    assert found["spark.driver.memory"] == "512m"
    assert found["spark.driver.extraClassPath"] == "/j/a.jar:/j/b.jar"
    assert found["spark.local.dir"] == "/data/work"
    assert "-Djava.io.tmpdir=/data/work" in found["spark.driver.extraJavaOptions"]
    assert "-XX:+UseSerialGC" in found["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "kafka.ssl.keystore.password",
        "kafka.ssl.keystore.certificate.chain", "kafka.ssl.truststore.certificates",
        "kafka.sasl.oauthbearer.client.credentials.client.secret",
    ],
)  # fmt: skip
def test_secrets_are_redacted_in_sparks_properties(name: str) -> None:
    """Spark's own expression does not know logins and keys of Kafka."""
    found = session.settings(work=Path("/w"))
    assert re.search(found["spark.redaction.regex"], name)
    assert not re.search(found["spark.redaction.regex"], "kafka.bootstrap.servers")


def test_references_are_resolved_by_one_provider_alone() -> None:
    """Kafka's clients would let properties name any class."""
    flags = session.settings(work=Path("/w"))["spark.driver.extraJavaOptions"]
    assert flags.endswith("automatic.config.providers=" + connection.PROVIDER_CLASS)


def test_the_environment_may_want_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and Spark's own log."""
    monkeypatch.setenv(session.MEMORY_VARIABLE, "2g")
    monkeypatch.setenv(session.LOG_LEVEL_VARIABLE, "info")
    found = session.settings(work=Path("/w"))
    assert found["spark.driver.memory"] == "2g"
    assert "-Dbarnabas.level=info" in found["spark.driver.extraJavaOptions"]
    assert "spark.driver.extraClassPath" not in found


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "21.0.2" 2024-01-16', 21),
        ('openjdk version "17" 2021-09-14', 17),
        ('java version "1.8.0_402"', 1),
        ("who knows", None),
    ],
)
def test_a_java_is_asked_for_its_version(tmp_path: Path, said: str, major: int | None) -> None:
    """Java 8 still counted as 1.8, which is too old either way."""
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\n")
    java.chmod(0o755)
    assert session.java_major(str(java)) == major


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Spark has it."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert session.java_program() == str(program)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "absent"))
    assert session.java_program() is None
