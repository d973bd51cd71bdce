"""What the suites of real processes need is found on the path."""

import stat
from pathlib import Path

import pytest

from tools import kind_needs, needs


def add_program(directory: Path, name: str, script: str = "exit 0") -> None:
    """A program that a shell runs."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("answer", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no such thing", None),
    ],
)
def test_versions_of_java(answer: str, major: int | None) -> None:
    """Old versions began with 1."""
    assert needs.java_major(answer) == major


def test_missing_programs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old Java does not do, nor one without its compiler."""
    monkeypatch.setenv("PATH", str(tmp_path))
    others = [
        "kcat", "go", "npm", "gcc", "mkfs.ext4", "redis-server", "strace", "zsh", "fish", "xfs_io"
    ]  # fmt: skip
    assert [need.program for need in needs.missing()] == ["java", "mvn", *others]
    add_program(tmp_path, "mvn")
    add_program(tmp_path, "java", "echo 'openjdk version \"11.0.2\"' >&2")
    add_program(tmp_path, "javac")
    assert [need.program for need in needs.missing()] == ["java", *others]
    add_program(tmp_path, "java", "echo 'openjdk version \"17.0.2\"' >&2")
    assert [need.program for need in needs.missing()] == others
    add_program(tmp_path, "go", "echo go1.19.8")
    assert "go" in [need.program for need in needs.missing()]
    add_program(tmp_path, "go", "echo go1.26.1")
    assert "go" not in [need.program for need in needs.missing()]


def test_only_what_debian_has_is_installed() -> None:
    """Helm and kubectl are nobody's package here."""
    assert kind_needs.packages_of(["docker", "helm"]) == ["docker.io", "iptables"]
