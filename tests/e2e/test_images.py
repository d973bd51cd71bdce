"""The images as they are built: what the Dockerfile has, and what docker is asked for."""

from __future__ import annotations

import re

import pytest

from e2e import images
from e2e.commands import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def test_every_stage_is_built_on_the_one_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an argument that a release gives a digest; nothing else is fetched from a registry."""
    monkeypatch.delenv(images.BASE_VARIABLE, raising=False)
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", DOCKERFILE, re.MULTILINE)
    names = {name for _, name in stages}
    assert {source for source, _ in stages} - names == {"${BASE}"}
    assert set(images.TARGETS) < names
    assert images.base() == "debian:trixie-slim"


@pytest.mark.parametrize("target", images.TARGETS)
def test_image_has_the_labels_of_its_target(target: str) -> None:
    """Title, description and licence; version and revision are those of a build."""
    stage = DOCKERFILE.partition(f" AS {target}\n")[2].partition("\nFROM ")[0]
    for name in ("title", "description", "licenses"):
        assert f"org.opencontainers.image.{name}=" in stage
    assert "USER 1001:1001" in stage


@pytest.mark.parametrize("target", images.TARGETS)
def test_image_starts_without_a_shell(target: str) -> None:
    """Its program is the first process itself, and handles the signals of Kubernetes."""
    stage = DOCKERFILE.partition(f" AS {target}\n")[2].partition("\nFROM ")[0]
    (command,) = re.findall(r"^CMD (.*)$", stage, re.MULTILINE)
    assert command.startswith('["')
    assert not re.search(r"ENTRYPOINT|\bsh\b", command)


def test_labels_and_base_are_given_to_docker() -> None:
    """In the form of its command line."""
    command = images.command("broker", on="base@sha256:1", labels={"a": "b"})
    assert command[:3] == ["docker", "build", "--quiet"]
    assert command[command.index("BASE=base@sha256:1") - 1] == "--build-arg"
    assert command[command.index("a=b") - 1] == "--label"
    assert command[-1] == "."
