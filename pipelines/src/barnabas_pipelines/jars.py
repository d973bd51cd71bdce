"""The jars of Spark's Kafka connector: fetched from a Maven repository, held to their checksums.

`spark-jars.lock` beside this module names them. Spark's own way (`spark.jars.packages`) resolves
the whole dependency tree on every machine: 63 MB instead of 10, and no checksum of ours.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from barnabas_pipelines.errors import PipelineError

# Maven's own default repository, where the environment names no other.
REPOSITORY_VARIABLE = "BARNABAS_MAVEN_REPOSITORY"
DEFAULT_REPOSITORY = "https://repo.maven.apache.org/maven2"
TIMEOUT_S = 60
# The largest of them has 9 MB; more than this is not what was asked for.
JAR_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file name."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where it is below the root of any Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


def locked() -> tuple[Jar, ...]:
    """The jars this version of the package is tested with."""
    return parse(files("barnabas_pipelines").joinpath("spark-jars.lock").read_text())


def parse(text: str) -> tuple[Jar, ...]:
    """Read a lock file; raises ValueError with the line that is not `maven:g:a:v sha256`."""
    jars = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        coordinates, _, digest = line.partition(" ")
        kind, *parts = coordinates.split(":")
        if kind != "maven" or len(parts) != 3 or len(digest.strip()) != 64:
            raise ValueError(f"not a line of a jar lock file: {line}")
        group, artifact, version = parts
        jars.append(Jar(group, artifact, version, digest.strip()))
    return tuple(jars)


def repository(environment: Mapping[str, str] = os.environ) -> str:
    """The root of the Maven repository to fetch from."""
    return environment.get(REPOSITORY_VARIABLE, DEFAULT_REPOSITORY).rstrip("/")


def default_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where jars are kept for this user: `$XDG_CACHE_HOME/barnabas/jars`."""
    cache = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "barnabas" / "jars"


def missing(directory: Path, jars: Iterable[Jar]) -> list[Jar]:
    """The jars which are not there, or there with other bytes."""
    return [jar for jar in jars if _digest_of(directory / jar.name) != jar.sha256]


def fetch(directory: Path, jars: Iterable[Jar], *, source: str) -> list[Path]:
    """Bring the jars into the directory; those there already are kept. Returns all their paths.

    Raises PipelineError where the repository has not got one, or has it with other bytes.
    """
    jars = tuple(jars)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for jar in missing(directory, jars):
            _fetch_one(directory, jar, source)
    except OSError as error:
        text = f"cannot keep Spark's jars in {directory}: {error.strerror}; name another directory"
        raise PipelineError(text) from error
    return [directory / jar.name for jar in jars]


def _fetch_one(directory: Path, jar: Jar, source: str) -> None:
    address = f"{source}/{jar.path}"
    advice = f"{REPOSITORY_VARIABLE} names another Maven repository"
    if not address.startswith(("https://", "http://", "file://")):
        raise PipelineError(f"{source} is no address of a Maven repository: {advice}")
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:  # noqa: S310 - checked above
            content = answer.read(JAR_BYTES_MAX + 1)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise PipelineError(f"cannot fetch {address}: {reason}; {advice}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != jar.sha256:
        text = f"{address} is not the jar that was tested: its sha256 is {digest}, not {jar.sha256}"
        raise PipelineError(text)
    # In one step: a run beside this one sees the whole jar or none.
    partial = directory / f".{jar.name}.{os.getpid()}"
    partial.write_bytes(content)
    partial.replace(directory / jar.name)


def _digest_of(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
