"""A project that is not ours: the wheels in an environment of its own, with pytest and no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
UV: Final = Path(sys.executable).parent / "uv"
PACKAGES: Final = ("barnabas-kafka", "barnabas-zookeeper", "barnabas-broker")
THEIR_TEST: Final = """\
import socket
import sys

import pytest

from barnabas_broker.testing import Broker


@pytest.mark.kafka_topic(partitions=3)
def test_there_is_a_broker_and_a_topic(kafka_broker, kafka_topic):
    host, port = kafka_broker.bootstrap_servers.split(":")
    socket.create_connection((host, int(port)), 60).close()
    assert len(list(kafka_broker.log_dir.glob(kafka_topic + "-*"))) == 3


def test_without_fixtures(tmp_path):
    with Broker({"num.partitions": 2}, startup_timeout_s=120) as kafka:
        assert kafka.bootstrap_servers


def test_nothing_of_the_repository_is_here():
    assert not [path for path in sys.path if path.startswith(%r)]
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without anything of this environment; it must succeed."""
    ours = ("PYTHON", "VIRTUAL_ENV", "UV_PROJECT", "PYTEST")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# A busy machine compiles for long.
@pytest.mark.timeout(1200)
def test_another_projects_tests_have_a_broker(tmp_path: Path) -> None:
    """Declared dependencies are enough for the fixtures, the context manager and the command."""
    wheels = tmp_path / "wheels"
    for package in PACKAGES:
        run(UV, "build", "--quiet", "--wheel", "--package", package, "-o", wheels, cwd=ROOT)
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_theirs.py").write_text(THEIR_TEST % str(ROOT))
    (project / "pytest.ini").write_text("[pytest]\nkafka_broker_startup_timeout = 120\n")
    python = project / ".venv" / "bin" / "python"
    run(UV, "venv", "--quiet", "--python", sys.executable, project / ".venv", cwd=project)
    built = sorted(wheels.glob("*.whl"))
    run(UV, "pip", "install", "--quiet", "--python", python, "pytest", *built, cwd=project)
    printed = run(python, "-m", "pytest", "-q", "-W", "error", cwd=project)
    assert "3 passed" in printed
    assert "broker" in run(python.parent / "barnabas", "--help", cwd=project)
    assert "0.1.0" in run(python.parent / "barnabas", "version", cwd=project)
