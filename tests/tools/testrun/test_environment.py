"""Suites run in the same environment whatever the user has set."""

from pathlib import Path

import pytest

from tests.environment import HERE
from tests.tools.test_needs import add_program
from tools.testrun.environment import GO, cleaned, is_set

USERS = {
    "PATH": "/nowhere",
    "HOME": "/home/me",
    "BROKER_UNDER_TEST": "apache",
    "BARNABAS_MAVEN_REPOSITORY": "https://mirror.example",
    "KIND_NODE_IMAGE": "node:1",
    "BARNABAS_BOOTSTRAP": "prod:9092",
    "KAFKA_OPTS": "-Dx",
    "KAFKA_HEAP_OPTS": "-Xmx1g",
    "CLASSPATH": "/jars",
    "JAVA_TOOL_OPTIONS": "-Dx",
    "PYTHONPATH": "/mine",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MAKEFLAGS": "n",
    "LC_ALL": "tr_TR.UTF-8",
    "TZ": "Asia/Kathmandu",
}


def test_variables_passed_to_a_suite() -> None:
    """Settings of Kafka, Java, Python and make do not; where things come from does."""
    assert cleaned(USERS) == {
        "PATH": f"/nowhere:{GO}",
        "HOME": "/home/me",
        "BROKER_UNDER_TEST": "apache",
        "BARNABAS_MAVEN_REPOSITORY": "https://mirror.example",
        "KIND_NODE_IMAGE": "node:1",
        "LC_ALL": "C.UTF-8",
        "NO_PROXY": HERE,
        "no_proxy": HERE,
        "TZ": "UTC",
    }


def test_java_home_is_dropped_where_java_is_on_the_path(tmp_path: Path) -> None:
    """One Java serves all tests: that of the path."""
    add_program(tmp_path, "java")
    environment = cleaned({"PATH": str(tmp_path), "JAVA_HOME": "/opt/old-java"})
    assert "JAVA_HOME" not in environment
    assert environment["PATH"] == f"{tmp_path}:{GO}"


def test_java_home_is_used_where_no_java_is_on_the_path(tmp_path: Path) -> None:
    """Its programs are found on the path then."""
    environment = cleaned({"PATH": str(tmp_path), "JAVA_HOME": "/opt/java"})
    assert environment["PATH"] == f"/opt/java/bin:{tmp_path}:{GO}"


@pytest.mark.parametrize(
    ("value", "on"), [("true", True), ("1", True), ("0", False), ("false", False), (None, False)]
)
def test_switches(value: str | None, on: bool) -> None:
    """`CI=false` and `STRICT=0` are off."""
    assert is_set(value) is on
