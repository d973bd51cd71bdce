"""The command line, as far as it goes without Spark."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas_pipelines import command
from barnabas_pipelines.command import pipeline
from barnabas_pipelines.errors import PipelineError, SpecError

DOCUMENT = """\
apiVersion: barnabas.io/v1alpha1
kind: KafkaPipeline
metadata: {name: p}
spec: {cluster: c, source: {topics: [t]}, sink: {parquet: {path: /data/p}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A pipeline."""
    path = tmp_path / "p.yaml"
    path.write_text(DOCUMENT)
    return path


def refused(*arguments: str) -> str:
    """What `barnabas pipeline` says of wrong usage."""
    result = CliRunner().invoke(pipeline, arguments, env={"BARNABAS_BOOTSTRAP": None})
    assert result.exit_code == 2, result.output
    return result.stderr


def test_it_is_a_verb_of_barnabas() -> None:
    """By its entry point."""
    (found,) = entry_points(group="barnabas.commands", name="pipeline")
    assert found.load() is pipeline


def test_the_overview_needs_no_spark() -> None:
    """Nothing of Spark, YAML or HTTP is imported until a pipeline runs."""
    code = (
        "import sys, barnabas_pipelines.command\n"
        "print({'pyspark', 'py4j', 'yaml', 'http.server'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert out.stdout == "set()\n"


def test_a_person_and_a_pod_have_their_own_defaults() -> None:
    """The directory /data and a port for probes are a pod's."""
    person = CliRunner().invoke(pipeline, ["run", "--help"]).stdout
    assert "[default: data]" in person
    out = subprocess.run(
        [sys.executable, "-m", "barnabas_pipelines", "run", "--help"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert "[default: /data]" in out.stdout
    assert "0.0.0.0:8080" in out.stdout
    assert "[default: inf" in out.stdout


def test_wrong_usage_is_one_line_and_2(file: Path) -> None:
    """File, brokers, addresses."""
    said = refused("run", str(file.with_name("absent.yaml")), "-b", "kafka:9092")
    assert said.startswith("Error: cannot read ")
    assert said.count("\n") == 1
    assert "which brokers? --bootstrap host:port" in refused("run", str(file))
    said = refused("run", str(file), "-b", "kafka:9092", "--status", "here")
    assert "--status 'here' is not HOST:PORT" in said


def test_a_pipeline_of_a_user_needs_its_files(tmp_path: Path, file: Path) -> None:
    """As whom it reads is no matter of chance."""
    file.write_text(DOCUMENT.replace("cluster: c,", "cluster: c, user: u,"))
    said = refused("run", str(file), "-b", "kafka:9092")
    assert "spec.user: give the files of the Secret of KafkaUser u with --kafka-user" in said
    said = refused("run", str(file), "-b", "kafka:9092", "--kafka-user", str(tmp_path))
    assert "security.protocol: No such file or directory" in said


def test_without_spark_the_way_to_it_is_named(tmp_path: Path, file: Path) -> None:
    """One line, exit code 1, no traceback, and no broker was looked for."""
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.prefix = sys.argv.pop(1)\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'pyspark' else find(name, *a)\n"
        "from barnabas_pipelines.command import pipeline\n"
        "pipeline()"
    )
    arguments = ["run", str(file), "--bootstrap", "127.0.0.1:1", "--data", str(tmp_path)]
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "env"), *arguments],
        capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert out.returncode == 1
    assert out.stderr == (
        "Error: pipelines need pyspark, which is not installed here:"
        " `make spark` in the sources, or pip install pyspark==4.2.0\n"
    )


def test_another_python_may_have_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one named, or the one beside this environment."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.delenv(command.PYTHON_VARIABLE, raising=False)
    assert command.spark_python() is None
    python = tmp_path / ".venv-spark" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert command.spark_python() == python
    monkeypatch.setenv(command.PYTHON_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(PipelineError, match=r"BARNABAS_PIPELINE_PYTHON names .*/absent, which"):
        command.spark_python()


def test_jars_are_fetched_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For images and caches; a repository that has them not is named."""
    monkeypatch.setenv("BARNABAS_MAVEN_REPOSITORY", tmp_path.as_uri())
    result = CliRunner().invoke(pipeline, ["jars", "--into", str(tmp_path / "jars")])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: cannot fetch file://")


def test_addresses_of_the_status() -> None:
    """Host and port, or only a port."""
    assert command.status_address("0.0.0.0:8080") == ("0.0.0.0", 8080)
    assert command.status_address("[::]:0") == ("::", 0)
    assert command.status_address(":81") == ("127.0.0.1", 81)
    with pytest.raises(SpecError):
        command.status_address("host:99999")
