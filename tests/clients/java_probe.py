"""Builds and runs the Java probe (``java/``) with one release of kafka-clients after another.

Builds are kept under ``.cache/probe``, named by the release and a hash of the sources, so only a
change of the probe builds again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.oracle.java_host import java_host
from tests.waiting import RUN, seconds

SOURCES: Final = Path(__file__).parent / "java"
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "probe"

#: Release → which class Era it is compiled with.
ERAS: Final = {
    "0.10.1.0": "v010",
    "0.11.0.3": "v011",
    "1.1.1": "v011",
    "2.4.1": "v24",
    "2.8.2": "v24",
    "3.9.1": "v24",
    "4.4.0": "v24",
}

#: The first, the last and one between them; the others run with `make soak`.
EVERY_RUN: Final = frozenset({"0.10.1.0", "2.8.2", "4.4.0"})


def marked(releases: Iterable[str]) -> list[Any]:
    """The releases as parameters of a test; those that are not of every run are marked `soak`."""
    return [
        pytest.param(each, marks=() if each in EVERY_RUN else pytest.mark.soak) for each in releases
    ]


def codecs(release: str) -> list[str]:
    """The codecs the release's producer can write; zstd came with 2.1."""
    legacy = ["none", "gzip", "snappy", "lz4"]
    return [*legacy, "zstd"] if ERAS[release] == "v24" else legacy


def classpath(release: str) -> str:
    """The class path of the probe built against the release; builds it on first use."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.rglob("*")):
        if file.suffix in {".java", ".xml"}:
            digest.update(file.relative_to(SOURCES).as_posix().encode() + file.read_bytes())
    build = CACHE / f"{release}-{digest.hexdigest()[:12]}"
    done = build / "classpath"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{release}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            _build(release, build)
        return f"{build / 'classes'}:{done.read_text().strip()}"


def _build(release: str, build: Path) -> None:
    # Written by Maven's last goal: its presence says that the build is complete.
    properties = {
        "kafka.version": release,
        "era": ERAS[release],
        "build": str(build),
        "mdep.outputFile": str(build / "classpath"),
    }
    command = ["mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml")]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    result = subprocess.run(
        [*command, "compile", "dependency:build-classpath"],
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    if result.returncode != 0:
        raise RuntimeError(f"the probe does not build with {release}:\n{result.stdout[-3000:]}")


def run(release: str, *arguments: str) -> dict[str, dict[str, Any]]:
    """Run the probe and return what each of its cases found, by the case's name."""
    result = java_host(classpath(release)).run("barnabas.probe.Probe", *arguments)
    cases = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode != 0:
        raise RuntimeError(f"the probe with {release} failed:\n{result.stderr[-3000:]}")
    return {case["case"]: case for case in cases}
