"""The distribution `barnabas` is the sum of the members: what they need, run and offer is in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import barnabas_broker
import barnabas_operator
from barnabas_pipelines.session import SPARK_VERSION
from tools.release import PYTHONS

ROOT: Final = Path(__file__).resolve().parents[1]
MEMBERS: Final = ("libs/kafka", "libs/zookeeper", "broker-image", "operator", "pipelines")
# What one needs for Kubernetes only; the rest of the operator's is what `barnabas local` runs on.
KUBERNETES: Final = {"kopf", "kubernetes"}


def project(folder: str) -> dict[str, Any]:
    """The pyproject.toml of a folder."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


def others(requirements: Iterable[str]) -> set[str]:
    """The requirements that are not for a sibling."""
    return {text for text in requirements if not text.startswith("barnabas-")}


def name(requirement: str) -> str:
    """The distribution that a requirement is for."""
    return re.split(r"[^a-z0-9-]", requirement)[0]


def test_it_needs_what_the_members_need() -> None:
    """Pins are the same, so that a user's broker runs on what the tests ran on."""
    whole = project(".")["project"]
    members = [project(folder)["project"] for folder in MEMBERS]
    needed = others(text for member in members for text in member["dependencies"])
    extras = project("broker-image")["project"]["optional-dependencies"]
    kubernetes = {text for text in needed if name(text) in KUBERNETES}
    assert set(whole["dependencies"]) == needed - kubernetes | others(extras["cli"])
    assert {key: set(value) for key, value in whole["optional-dependencies"].items()} == {
        "operator": kubernetes,
        "perf": others(extras["perf"]),
        "pipelines": set(project("pipelines")["project"]["optional-dependencies"]["spark"]),
    }
    assert whole["optional-dependencies"]["pipelines"] == [f"pyspark=={SPARK_VERSION}"]


def test_it_has_their_commands_and_packages() -> None:
    """No package, script, subcommand or plugin of a member is left out."""
    whole = project(".")
    scripts: dict[str, str] = {}
    entry_points: dict[str, dict[str, str]] = {}
    for folder in MEMBERS:
        member = project(folder)["project"]
        scripts |= member.get("scripts", {})
        for group, offered in member.get("entry-points", {}).items():
            entry_points.setdefault(group, {}).update(offered)
    assert whole["project"]["scripts"] == scripts
    assert whole["project"]["entry-points"] == entry_points
    packages = whole["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    found = [path for folder in MEMBERS for path in (ROOT / folder).glob("src/*/__init__.py")]
    assert sorted(packages) == sorted(str(path.parent.relative_to(ROOT)) for path in found)


def test_there_is_one_version() -> None:
    """The distribution's, each member's, those in the code, and the pins of siblings."""
    version = project(".")["project"]["version"]
    assert barnabas_broker.__version__ == barnabas_operator.__version__ == version
    for folder in MEMBERS:
        member = project(folder)["project"]
        assert member.get("version", version) == version
        siblings = {text for text in member["dependencies"] if text.startswith("barnabas-")}
        assert all(text.endswith(f"=={version}") for text in siblings)


def test_its_metadata_is_what_an_index_shows() -> None:
    """Readme, licence, and each Python that wheels are built for, for both processors."""
    whole = project(".")
    about = whole["project"]
    assert (ROOT / about["readme"]).is_file()
    assert about["license"] == "Apache-2.0"
    assert all((ROOT / each).is_file() for each in about["license-files"])
    versions = [
        text.rpartition(" ")[2]
        for text in about["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)
    ]
    assert about["requires-python"] == f">={versions[0]}"
    wheels = whole["tool"]["cibuildwheel"]
    # Neither C library is left out: a pattern without one takes both.
    assert wheels["build"] == [f"cp{version.replace('.', '')}-*" for version in versions]
    assert "skip" not in wheels
    assert wheels["linux"]["archs"] == ["x86_64", "aarch64"]
    assert versions == list(PYTHONS)


APACHE_TOOLS: Final = """
connect-distributed connect-mirror-maker connect-plugin-path connect-standalone kafka-acls
kafka-broker-api-versions kafka-client-metrics kafka-cluster kafka-configs kafka-console-consumer
kafka-console-producer kafka-consumer-groups kafka-consumer-perf-test kafka-delegation-tokens
kafka-delete-records kafka-dump-log kafka-e2e-latency kafka-features kafka-get-offsets kafka-jmx
kafka-leader-election kafka-log-dirs kafka-metadata-quorum kafka-metadata-shell kafka-mirror-maker
kafka-producer-perf-test kafka-reassign-partitions kafka-replica-verification kafka-run-class
kafka-server-start kafka-server-stop kafka-storage kafka-streams-application-reset kafka-topics
kafka-transactions kafka-verifiable-consumer kafka-verifiable-producer trogdor
zookeeper-security-migration zookeeper-server-start zookeeper-server-stop zookeeper-shell
"""
"""What bin/ of Apache Kafka 3.9.1 has, without `.sh`."""


def test_each_tool_of_apaches_is_there_or_has_its_reason() -> None:
    """Under both names that people type, or in the tables of docs/tasks/tools.md."""
    scripts = project(".")["project"]["scripts"]
    page = (ROOT / "docs/tasks/tools.md").read_text()
    refused, _, missing = page.partition("These are refused by name")[2].partition(
        "These are not installed:"
    )
    for tool in APACHE_TOOLS.split():
        if tool not in scripts:
            assert f"`{tool}`" in missing, tool
            continue
        assert scripts[f"{tool}.sh"] == scripts[tool]
        absent = ".absent:" in scripts[tool]
        assert absent is (f"| `{tool}` |" in refused), tool
