"""What is missing on a machine is found on its path, with the command that installs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tools.test_needs import add_program
from tools.testrun import requirements
from tools.testrun.suites import SUITES

ALL = [need for suite in SUITES for need in suite.needs]


def test_every_missing_program_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an empty path everything is missing; only what is wanted is looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = requirements.missing(ALL)
    assert set(found) == set(ALL) - ({requirements.ROOT} if os.geteuid() == 0 else set())
    assert str(found["kcat"]) == "kcat (apt-get install kcat)"
    assert found["docker"].remedy == "apt-get install docker.io iptables"
    assert found["helm"].remedy == "see docs/kubernetes.md"
    assert set(requirements.missing(["mvn", "kind"])) == {"mvn", "kind"}


def test_docker_must_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Docker whose daemon does not run is as good as none."""
    for program in requirements.KIND:
        add_program(tmp_path, program)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert requirements.missing(requirements.KIND) == {}
    add_program(tmp_path, "docker", "echo no daemon >&2; exit 1")
    assert "Docker does not answer" in requirements.missing(requirements.KIND)["docker"].remedy


def test_missing_packages_are_installed_as_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """apt-get gets the packages of the wanted programs alone, and only from root."""
    calls = tmp_path / "calls"
    add_program(tmp_path, "apt-get", f'echo "$@" >> {calls}')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    requirements.install(["kcat", "redis-server", "root"])
    assert calls.read_text().splitlines() == [
        "update -qq",
        "install -y -qq --no-install-recommends kcat redis-server",
    ]
    assert "installing kcat redis-server" in capfd.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    requirements.install(["mvn"])
    assert "maven" not in calls.read_text()
    assert "sudo" in requirements.missing([requirements.ROOT])[requirements.ROOT].remedy
