"""The distribution `barnabas` in an empty environment: a user's first minutes, and their tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from barnabas_broker import __version__
from barnabas_broker.cli.version import built_as
from barnabas_kafka.compiled import MODULES

ROOT: Final = Path(__file__).resolve().parents[2]
UV: Final = Path(sys.executable).parent / "uv"
NO_COMPILER: Final = {"CC": "no-compiler-here"}
PURE: Final = f"pure Python: {len(MODULES)} of {len(MODULES)} modules are not compiled"
WARNING: Final = "Running as pure Python, slower"
THEIR_TEST: Final = """\
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker


def barnabas(*arguments, **options):
    command = [Path(sys.executable).with_name("barnabas"), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True, **options).stdout


@pytest.mark.kafka_topic(partitions=3)
def test_a_record_goes_there_and_back(kafka_broker, kafka_topic):
    barnabas("produce", kafka_topic, "-b", kafka_broker.bootstrap_servers, input="hello\\n")
    read = ("consume", kafka_topic, "--from-beginning", "--until-end")
    assert barnabas(*read, "-b", kafka_broker.bootstrap_servers) == "hello\\n"
    assert len(list(kafka_broker.log_dir.glob(kafka_topic + "-*"))) == 3


def test_without_fixtures(tmp_path):
    with Broker({"num.partitions": 2}, startup_timeout_s=120) as kafka:
        assert kafka.bootstrap_servers


def test_nothing_of_the_repository_is_here():
    assert not [path for path in sys.path if path.startswith(%r)]
"""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command without anything of this environment; it must succeed."""
    ours = ("PYTHON", "VIRTUAL_ENV", "UV_PROJECT", "PYTEST")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command, cwd=cwd, env=clean | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_installation(project: Path, wheel: Path, *, built: str) -> None:
    """Install the wheel and what it declares; command, fixtures and context manager must work."""
    (project / "test_theirs.py").write_text(THEIR_TEST % str(ROOT))
    (project / "pytest.ini").write_text("[pytest]\nkafka_broker_startup_timeout = 120\n")
    python = project / ".venv" / "bin" / "python"
    run(UV, "venv", "--quiet", "--python", sys.executable, project / ".venv", cwd=project)
    run(UV, "pip", "install", "--quiet", "--python", python, "pytest", wheel, cwd=project)
    barnabas = python.with_name("barnabas")
    assert run(barnabas, "--version", cwd=project) == f"barnabas {__version__} ({built})\n"
    for command in ("local", "pipeline", "size"):
        assert "Usage: barnabas " in run(barnabas, command, "--help", cwd=project)
    assert "3 passed" in run(python, "-m", "pytest", "-q", "-W", "error", cwd=project)


# A busy machine compiles for long.
@pytest.mark.timeout(1200)
def test_from_the_source_distribution(tmp_path: Path) -> None:
    """What would be uploaded builds, is compiled where this machine compiles, and is complete."""
    run(UV, "build", "--quiet", "--out-dir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    project = tmp_path / "project"
    project.mkdir()
    check_installation(project, wheel, built=built_as())


def test_without_a_compiler(tmp_path: Path) -> None:
    """The wheel is then one for every machine; version and log of the broker say what it is."""
    run(
        *(UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path / "dist", ROOT),
        cwd=tmp_path,
        **NO_COMPILER,
    )
    wheel = tmp_path / "dist" / f"barnabas-{__version__}-py3-none-any.whl"
    project = tmp_path / "project"
    project.mkdir()
    check_installation(project, wheel, built=PURE)
    start = (
        "from barnabas_broker.testing import Broker\n"
        "with Broker(startup_timeout_s=120) as kafka:\n"
        "    print(kafka.output())\n"
    )
    assert run(project / ".venv" / "bin" / "python", "-c", start, cwd=project).count(WARNING) == 1


def ways(place: Path) -> dict[str, tuple[tuple[str | Path, ...], Path]]:
    """How one installs from a clone, and where the command is then."""
    python = place / ".venv" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return {
        "pip": ((*pip, ROOT), python.with_name("barnabas")),
        "pip from git": ((*pip, f"git+file://{ROOT}"), python.with_name("barnabas")),
        "uv tool": ((UV, "tool", "install", "--quiet", ROOT), place / "bin" / "barnabas"),
        "pipx": (
            (UV, "tool", "run", "pipx", "install", "--quiet", ROOT),
            place / "bin" / "barnabas",
        ),
    }


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", ["pip", "pip from git", "uv tool", "pipx"])
def test_the_ways_that_the_documents_name(tmp_path: Path, way: str) -> None:
    """Each ends with a command that runs. Without a compiler, as compiling has been shown above."""
    run(UV, "venv", "--quiet", "--seed", "--python", sys.executable, ".venv", cwd=tmp_path)
    command, barnabas = ways(tmp_path)[way]
    tools, commands = str(tmp_path / "tools"), str(tmp_path / "bin")
    run(
        *command,
        cwd=tmp_path,
        UV_TOOL_DIR=tools,
        UV_TOOL_BIN_DIR=commands,
        PIPX_HOME=tools,
        PIPX_BIN_DIR=commands,
        PIPX_MAN_DIR=str(tmp_path / "man"),
        PIPX_DEFAULT_PYTHON=sys.executable,
        **NO_COMPILER,
    )
    assert run(barnabas, "--version", cwd=tmp_path) == f"barnabas {__version__} ({PURE})\n"
    assert "Usage: barnabas local" in run(barnabas, "local", "--help", cwd=tmp_path)
