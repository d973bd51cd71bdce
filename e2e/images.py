"""Builds the images of the Dockerfile and prints their sizes: `make images`.

`BARNABAS_REGISTRY` is put before their names, as in registry.example/kafka/barnabas-broker, and
`BARNABAS_BASE_IMAGE` is what they are built on instead of the Dockerfile's base.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from e2e.commands import ROOT, run
from tests.waiting import RUN

# In the order of the Dockerfile: docker's older builder makes all stages up to the target.
TARGETS: Final = ("broker", "operator", "zookeeper", "pipeline")
REGISTRY_VARIABLE: Final = "BARNABAS_REGISTRY"
BASE_VARIABLE: Final = "BARNABAS_BASE_IMAGE"
_BASE: Final = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)
NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is there: its name with tag, the bytes it takes, the seconds it took."""

    name: str
    size: int
    took_s: float


def version() -> str:
    """The project's version, which is the images' tag."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def name(target: str) -> str:
    """The name of a target's image, with its tag."""
    registry = os.environ.get(REGISTRY_VARIABLE, "").rstrip("/")
    return f"{registry}{'/' if registry else ''}barnabas-{target}:{version()}"


def names() -> tuple[str, ...]:
    """The names of all images."""
    return tuple(map(name, TARGETS))


def base() -> str:
    """What the images are built on."""
    (given,) = _BASE.findall((ROOT / "Dockerfile").read_text("utf-8"))
    return os.environ.get(BASE_VARIABLE) or str(given)


def build(target: str, *, on: str = "", labels: Mapping[str, str] = NOTHING) -> Image:
    """Build one image; docker's own words go to standard error where it fails.

    `on` is another base than that of the machine.
    """
    began = time.monotonic()
    run(*command(target, on=on or base(), labels=labels), within=2 * RUN)
    inspected = json.loads(run("docker", "image", "inspect", name(target)))
    return Image(name(target), int(inspected[0]["Size"]), time.monotonic() - began)


def command(target: str, *, on: str, labels: Mapping[str, str] = NOTHING) -> list[str]:
    """What builds an image."""
    arguments = {"BASE": on}
    if repository := os.environ.get("BARNABAS_MAVEN_REPOSITORY"):
        arguments["BARNABAS_MAVEN_REPOSITORY"] = repository
    pairs = [("--build-arg", f"{key}={value}") for key, value in arguments.items()]
    pairs += [("--label", f"{key}={value}") for key, value in labels.items()]
    options = [word for pair in pairs for word in pair]
    return [
        "docker", "build", "--quiet", *options, "--target", target, "--tag", name(target), ".",
    ]  # fmt: skip


def main() -> int:
    """Build all and print what they take; returns the exit status."""
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        sys.stderr.write("barnabas: docker does not answer: install or start it\n")
        return 1
    for target in TARGETS:
        image = build(target)
        print(f"{image.name:<32} {image.size / 1e6:5.0f} MB {image.took_s:5.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
